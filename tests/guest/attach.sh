# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of rtrs-attach in a guest: the device disk0 of the export disk, $tmp/disk, by the driver
# $via, its process, and load that is verified.  Sourced behind lib.sh.
requires_attach
requires_server

state=/run/rtrs/attach/disk0
node=/dev/rtrs/disk0
load=''
mkdir "$tmp/mnt"
truncate -s 64M "$tmp/disk"

attach_end() {
	touch "$tmp/stop"
	[ -z "$load" ] || wait "$load" || true
	! mountpoint -q "$tmp/mnt" || umount "$tmp/mnt"
	"$RTRS_DETACH" --all || "$RTRS_DETACH" --all --force
}

# What a test may change: the exports, where the server listens, where rtrs-attach finds it, and the
# keys of rtrs-attach.
exports=(disk="$tmp/disk")
listen_at=127.0.0.1 host=127.0.0.1
keys=()

# begin_server: of $exports; once.
begin_server() {
	cleanup_fn attach_end
	start_server --listen "tcp://$listen_at:0" "${exports[@]}"
}

# restart_server: where it was.
restart_server() {
	start_server --listen "tcp://$listen_at:$server_port" "${exports[@]}"
}

# attach: sets disk, the kernel's name of the device.
attach() {
	[ "$("$RTRS_ATTACH" --via="$via" "$host:$server_port/disk" disk0 "${keys[@]}")" = $node ] ||
		fail "no $node"
	disk=$(sed -n 's/^disk=//p' $state)
}

# attach_waits: in the background, until the process waits for the server; sets attacher.
attach_waits() {
	"$RTRS_ATTACH" --via="$via" "$host:$server_port/disk" disk0 "${keys[@]}" &
	attacher=$!
	wait_until "the process that waits for the server" listed "waits for server"
}

attached_pid() {
	sed -n 's/^pid=//p' $state
}

# It is no child of this script.
kill_attached() {
	local pid

	pid=$(attached_pid)
	kill -KILL "$pid"
	wait_until "the end of process $pid" process_ended "$pid"
}

# listed STATE
listed() {
	"$RTRS_ATTACH" --list | grep -q "^disk0 .* $1 "
}

# descriptors PID: their number.
descriptors() {
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

size_is() {
	[ "$(blockdev --getsize64 $node)" -eq "$1" ]
}

# Sixteen threads write and read back until end_load.
begin_load() {
	rm -f "$tmp/stop" "$tmp/stop.turns" "$tmp/stop.killed"
	"$top_srcdir/tests/guest/disk-load.py" $node "$tmp/stop" &
	load=$!
	wait_until "the load" test -s "$tmp/stop.turns"
}

goes_on() {
	load_goes_on "$1" "$tmp/stop"
}

end_load() {
	touch "$tmp/stop"
	wait "$load" || fail "an error, or other data, at the disk"
	load=''
}
