#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=120
# guest: kernel=6.1 timeout=120 full
# Authentication in messages over RDMA, which has no TLS: data, who does not get in, and the
# client of the kernel, which cannot prove anything.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
modprobe rnbd-client

umask 077
for name in alice bob; do
	"$top_builddir/rtrs-psk" $name
done >"$tmp/server.psk"
grep ^alice: "$tmp/server.psk" >"$tmp/alice.psk"
"$top_builddir/rtrs-psk" alice >"$tmp/wrong.psk"
random_file "$tmp/disk" $((4 << 20))
bench=(timeout "$TIMEOUT_S" "$top_builddir/rtrs-bench" --transport=rdma --number-ios=20)

start_server --listen "rdma://$ip4:1234" --auth=require --auth-psk="$tmp/server.psk" \
	--log-level=debug --control none "disk=$tmp/disk"
start_nbdkit "server=$ip4" transport=rdma export=disk control=none auth-psk="$tmp/alice.psk"
cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
grep -q 'authenticated by the key alice' "$server_log"
must_fail "${bench[@]}" --auth-psk="$tmp/wrong.psk" "$ip4" disk 2>"$tmp/wrong.err"
grep -q 'authentication as alice: the server has refused the key' "$tmp/wrong.err"
wait_line "$server_log" 'authentication: wrong key, claiming to be alice'
must_fail "${bench[@]}" "$ip4" disk
must_fail rnbd_map s1 disk
wait_line "$server_log" 'it does not authenticate, which --auth=require needs'
# The server comes back: the path proves itself again.
kill_process "$server_pid"
start_server --listen "rdma://$ip4:1234" --auth=psk --auth-psk="$tmp/server.psk" \
	--log-level=debug --control none "disk=$tmp/disk"
cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
grep -q 'authenticated by the key alice' "$server_log"
# The kernel's client is anonymous.
rnbd_map s2 disk access_mode=ro
dd if="$dev" bs=1M count=4 iflag=direct status=none | cmp - "$tmp/disk"
rnbd_unmap "$dev"
