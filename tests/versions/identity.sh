#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file on XFS has another identity since the version of before (NEWS, "Breaks"): a gateway whose
# NBD client has it open refuses it when the server of the other version starts, and says so.  A
# gateway of now goes on by "rtrsctl server accept", which its line names.  At one of before the
# NBD client connects again.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_gateway; requires_root
requires nbdsh --version
requires mkfs.xfs -V

truncate -s 400M "$tmp/xfs"
mkfs.xfs -q "$tmp/xfs"
mkdir "$tmp/mnt"
mount -o loop "$tmp/xfs" "$tmp/mnt" || skip "cannot mount XFS here"
cleanup_umount "$tmp/mnt"
truncate -s 1M "$tmp/mnt/disk"

# serve VERSION
serve() {
	use "$1"
	start_server --listen "unix:$tmp/rtrs.sock" "disk=$tmp/mnt/disk"
}

for gateway in before now; do
	for server in before now; do
		serve "$server"
		use "$gateway"
		start_gateway "unix:$tmp/rtrs.sock" export=disk io-timeout=forever
		client_starts
		ask write ok
		ask flush ok
		kill_process "$server_pid"
		serve "$(other "$server")"
		wait_line "$gateway_log" \
			'export came back as another file, or on another host: it is not used'
		if [ "$gateway" = now ]; then
			grep -q 'if it is a copy of the former one: rtrsctl server accept' \
				"$gateway_log"
			"$top_builddir/rtrsctl" --gateway server accept
		else
			client_ends
			client_starts
		fi
		ask read ok
		ask write ok
		ask flush ok
		client_ends
		stop_process "$gateway_pid"
		stop_process "$server_pid"
	done
done
