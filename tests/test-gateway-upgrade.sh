#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Another gateway takes the place of one under QEMU, as nbdkit-rtrs-plugin(1) says: SIGKILL, and a
# new one at the same socket.  No request fails, and all data is there.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires qemu-img --version

random_file "$tmp/image" $((48 << 20))
truncate -s 48M "$tmp/disk"
start_server --control "$tmp/control.sock" "disk=$tmp/disk"

# written BYTES: the server has so many.
written() {
	[ "$("$top_builddir/rtrsctl" --socket "$tmp/control.sock" --json stats |
		with_json 'print(a["exports"][0]["stats"]["write"]["bytes"])')" -ge "$1" ]
}

start_nbdkit "127.0.0.1:$server_port" export=disk control="$tmp/nbdkit.sock"
first=$nbdkit_pid place=$sock
# QEMU's block layer, as in a virtual machine; slow, so that it has far to go at each kill.
qemu-img convert -n -W -m 8 -r 16M -f raw --target-image-opts "$tmp/image" \
	"driver=raw,file.driver=nbd,file.server.type=unix,file.server.path=$place,file.reconnect-delay=$TIMEOUT_S" &
convert=$!
for mebibytes in 4 12; do
	wait_until "$mebibytes MiB" written $((mebibytes << 20))
	kill_process "$nbdkit_pid"
	# With the same control socket: what the first one left is no hindrance.
	start_nbdkit "127.0.0.1:$server_port" export=disk control="$tmp/nbdkit.sock"
	process_ended "$convert" && fail "the copy ended before its gateway was killed"
	mv "$sock" "$place"
done
expect_exit "$convert" 0
cmp "$tmp/image" "$tmp/disk"
[ "$nbdkit_pid" -ne "$first" ]
