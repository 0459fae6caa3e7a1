#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=240
# p32: software iWARP (doc/traps.md 32): both ends refuse siw within a bounded time.  A queue pair
# of siw never flushes what is posted after its error (doc/verbs.md Q18); nobody hangs or spins by
# that.
#
# By hand: Debian builds no siw for amd64.  Build drivers/infiniband/sw/siw as prepare.sh builds
# RTRS, and put siw.ko below lib/modules/KV/extra of a copy of $GUEST_CACHE, with depmod.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_gateway
modprobe siw || skip "the guest's kernel has no siw"
rdma link delete rxe0
rdma link add siw0 type siw netdev eth0
late='siw0 has not given back all requests 10 s after the failure: its queue pair is destroyed'

truncate -s 1M "$tmp/disk"
start_server --listen "rdma://$ip4:1234" disk="$tmp/disk"
status=0
timeout "$TIMEOUT_S" "$RTRS_NBD" -f -U "$tmp/sock" control=none "server=rdma://$ip4" export=disk \
	>"$tmp/gateway.out" 2>&1 || status=$?
cat "$tmp/gateway.out"
[ "$status" -eq 1 ] || fail "rtrs-nbd: status $status"
grep -q "server=rdma://$ip4: connection 0: " "$tmp/gateway.out" || fail "rtrs-nbd says no reason"
grep -q "$late" "$tmp/gateway.out" || fail "rtrs-nbd does not say that it gave the device up"
wait_line "$server_log" 'path down: cannot post receives on connection 0'
wait_line "$server_log" "$late"
idle_for 2 "$server_pid"
[ "$idle_ticks" -lt 100 ] || fail "the server spins: $idle_ticks hundredths in 2 s"
stop_server "$server_pid"
