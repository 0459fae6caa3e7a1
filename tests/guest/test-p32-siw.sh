#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=120 full
# guest: kernel=6.12 timeout=120 full
# p32: software iWARP (doc/traps.md 32).  Both ends refuse siw with the reason, before a queue
# pair exists there; transport=auto takes tcp, at the same address and port; a listener of all
# addresses refuses peers that come by siw, and has the TCP port of its number.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_gateway
rdma link delete rxe0
cleanup_fn rdma link add rxe0 type rxe netdev eth0
modprobe siw
rdma link add siw0 type siw netdev eth0
cleanup_fn rdma link delete siw0
no_imm='speaks iWARP, which has no RDMA_WRITE_WITH_IMM'
late='has not given back all requests'

random_file "$tmp/disk" $((1 << 20))
expect_failure 1 "rdma://$ip4:1234: Operation not supported: the RDMA device of the address $no_imm: listen on tcp://" \
	"$RTRS_SERVER" --listen "rdma://$ip4:1234" disk="$tmp/disk"
start_server --listen "tcp://$ip4:1234" disk="$tmp/disk"
expect_failure 1 "server=rdma://$ip4: .*the RDMA device there $no_imm: use TCP" \
	"$RTRS_NBD" -f -U "$tmp/sock" control=none "server=rdma://$ip4" export=disk
NBD_FRONT=rtrs-nbd nbd_gateway unix -v "$ip4" export=disk
wait_line "$nbdkit_log" "transport=auto: tcp, because of rdma: .*$no_imm"
nbdcopy "nbd+unix:///?socket=$tmp/nbd.sock" "$tmp/copy"
cmp "$tmp/disk" "$tmp/copy"
stop_process "$nbdkit_pid"
stop_server "$server_pid"

echo "== all addresses"
start_server --listen "rdma://0.0.0.0:1234" disk="$tmp/disk"
expect_failure 1 "tcp://$ip4:1234: Address already in use" \
	"$RTRS_SERVER" --listen "tcp://$ip4:1234" disk="$tmp/copy"
modprobe rnbd-client
must_fail rnbd_map siw disk
wait_line "$server_log" "connection refused: the RDMA device siw0 $no_imm"
must_fail grep -q "$late" "$server_log"
stop_server "$server_pid"
