#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=200 full
# The front end is killed and started again while a file system on the kernel's NBD client is
# written to, and so is rtrs-server.  With what nbd-client -persist can, the device is as lost as
# with nbdkit's own file plugin; with what the kernel can (nbd-keep.py) nobody notices.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
requires nbdkit file --version
command -v nbd-client >/dev/null || skip "nbd-client is not installed"

truncate -s 64M "$tmp/disk" "$tmp/plain"
start_server disk="$tmp/disk"
ours=("$RTRS_PLUGIN" "server=127.0.0.1:$server_port" export=disk)
others=(file "$tmp/plain")

# The device while there is a server, or what is written to it waits for one.
writer='' keeper=''
end() {
	touch "$tmp/stop"
	[ -z "$writer" ] || wait "$writer" || true
	! mountpoint -q "$tmp/mnt" || umount "$tmp/mnt"
	[ -z "$keeper" ] || kill_process "$keeper"
	nbd_detach
}

# gateway unix|tcp PLUGIN [KEY=VALUE]...
gateway() {
	nbd_serve "$@"
	# Before nbdkit is stopped.
	cleanup_fn end
}

# One that nobody serves may also have become empty.
readable() {
	[ "$(dd if=/dev/nbd0 bs=4k count=1 iflag=direct status=none | wc -c)" -eq 4096 ]
}

no_nbd_client() {
	! pgrep -x nbd-client
}

back_or_lost() {
	no_nbd_client || readable
}

# persist OPTION PLUGIN...: what -persist makes of a restart: back or lost.
persist() {
	gateway unix "${@:2}"
	# shellcheck disable=SC2086 # none or one
	nbd_attach -persist $1
	readable
	kill_process "$nbdkit_pid"
	gateway unix "${@:2}"
	# Lost for good when nobody is there to attach it again.
	wait_until "nbd-client to attach the device again or to give it up" back_or_lost
	outcome=lost
	! readable || outcome=back
	nbd_detach
	wait_until "the end of nbd-client" no_nbd_client
	stop_process "$nbdkit_pid"
}

for option in "" -nonetlink; do
	persist "$option" "${others[@]}"
	control=$outcome
	persist "$option" "${ours[@]}"
	echo "nbd-client -persist $option: $outcome, with nbdkit file: $control"
	[ "$outcome" = "$control" ] || fail "it is not so with nbdkit file"
done

mkdir "$tmp/mnt"
# write_files: each is on the disk before its sum is told; until $tmp/stop exists.
write_files() {
	local n=0 at=$tmp/mnt/file

	while [ ! -e "$tmp/stop" ]; do
		n=$((n + 1))
		head -c $((n % 20 * 4001 + 1)) /dev/urandom >"$at$n"
		sync "$at$n"
		sha256sum "$at$n" >>"$tmp/sums"
		[ $n -le 200 ] || rm "$at$((n - 200))"
	done
}

more_files() {
	[ "$(wc -l <"$tmp/sums")" -ge $((files + 10)) ]
}

connected_again() {
	[ "$(grep -c 'connected again' "$tmp/keep.log")" -ge "$1" ]
}

# front_ends TURN: it is killed; every second time it is stopped if it is rtrs-nbd, which sends no
# ESHUTDOWN then.
front_ends() {
	if [ "$NBD_FRONT" = rtrs-nbd ] && [ $(($1 % 2)) -eq 0 ]; then
		stop_process "$nbdkit_pid"
	else
		kill_process "$nbdkit_pid"
	fi
}

# restarts TIMES unix|tcp PLUGIN...
restarts() {
	local times=$1 turn

	shift
	gateway "$@"
	nbd_attach -timeout 2
	"$top_srcdir/tests/guest/nbd-keep.py" /dev/nbd0 100 "${nbd_where[@]}" >"$tmp/keep.log" \
		2>&1 &
	keeper=$!
	wait_line "$tmp/keep.log" '^ready'
	mkfs.ext4 -q -F /dev/nbd0
	mount /dev/nbd0 "$tmp/mnt"
	rm -f "$tmp/stop"
	: >"$tmp/sums"
	write_files &
	writer=$!
	for ((turn = 1; turn <= times; turn++)); do
		files=$(wc -l <"$tmp/sums")
		wait_until "more files" more_files
		front_ends $turn
		gateway "$@"
		wait_until "connection $turn" connected_again $turn
	done
	if [ "$2" = "$RTRS_PLUGIN" ]; then
		files=$(wc -l <"$tmp/sums")
		wait_until "more files" more_files
		kill_process "$server_pid"
		start_server --listen "tcp://127.0.0.1:$server_port" disk="$tmp/disk"
	fi
	files=$(wc -l <"$tmp/sums")
	wait_until "more files" more_files
	touch "$tmp/stop"
	wait $writer
	writer=
	umount "$tmp/mnt"
	fsck.ext4 -f -n /dev/nbd0
	blockdev --flushbufs /dev/nbd0
	mount -o ro /dev/nbd0 "$tmp/mnt"
	tail -n 200 "$tmp/sums" | sha256sum --quiet -c
	umount "$tmp/mnt"
	kill_process $keeper
	keeper=
	nbd_detach
	stop_process "$nbdkit_pid"
}

restarts 1 unix "${others[@]}"
restarts 2 unix "${ours[@]}"
restarts 1 tcp "${ours[@]}"
