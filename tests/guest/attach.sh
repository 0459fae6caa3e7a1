# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of rtrs-attach in a guest: the device disk0 of the export disk, $tmp/disk, by the driver
# $via, its process, and load that is verified.  Sourced behind lib.sh.
requires_attach
requires_server

state=/run/rtrs/attach/disk0
node=/dev/rtrs/disk0
mkdir "$tmp/mnt"
truncate -s 64M "$tmp/disk"

# What a test has put on the device goes before the device does.
users_end() {
	:
}

# As often as it is called.  A load is there only if the test has failed: requests that wait for a
# server get errors, so that the load ends.
attach_end() {
	[ ${#loads[@]} -eq 0 ] || "$RTRS_DETACH" --all --force || true
	loads_end || true
	users_end
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
	start_server --listen "tcp://$listen_at:0" "${exports[@]}"
	cleanup_fn attach_end
}

# restart_server: where it was.
restart_server() {
	start_server --listen "tcp://$listen_at:$server_port" "${exports[@]}"
	cleanup_fn attach_end
}

# attach: sets disk, the kernel's name of the device.
attach() {
	[ "$("$RTRS_ATTACH" --via="$via" "$host:$server_port/disk" disk0 "${keys[@]}")" = $node ] ||
		fail "no $node"
	disk=$(sed -n 's/^disk=//p' $state)
}

# daemon_waits: the daemon of the command $attacher waits for the server.  Until there is a daemon,
# the state names the command itself.
daemon_waits() {
	listed "waits for server" && [ "$(attached_pid)" -ne "$attacher" ]
}

# attach_waits: in the background, until the daemon waits for the server; sets attacher.
attach_waits() {
	"$RTRS_ATTACH" --via="$via" "$host:$server_port/disk" disk0 "${keys[@]}" &
	attacher=$!
	wait_until "the process that waits for the server" daemon_waits
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

in_flight() {
	[ "$(awk '{ print $9 }' "/sys/block/$disk/stat")" -gt 0 ]
}

# force_without_server: rtrs-detach --force while a reader waits for a server that has gone.  The
# test says what nothing_left is.
force_without_server() {
	local reader

	kill_process "$server_pid"
	dd if=$node of=/dev/null bs=4k count=1 iflag=direct &
	reader=$!
	wait_until "a request that waits" in_flight
	"$RTRS_DETACH" --force disk0
	must_fail wait "$reader"
	wait_until "the end of the disk" nothing_left
	restart_server
}

# ---- load ----

# The processes, by name.
declare -A loads=()

# begin_load [NAME [FILE [SECTOR]]]: sixteen threads write to the device, or to FILE, and read back,
# until end_loads.
begin_load() {
	local name=${1-disk} stop=$tmp/stop.${1-disk}

	rm -f "$stop" "$stop.turns" "$stop.killed"
	"$top_srcdir/tests/guest/disk-load.py" "${2-$node}" "$stop" "${3-512}" &
	loads[$name]=$!
	wait_until "the load of $name" test -s "$stop.turns"
}

# syncs_may_fail [NAME]: from here on, of that load.
syncs_may_fail() {
	touch "$tmp/stop.${1-disk}.killed"
}

# loads_go_on WHAT: each of them.
loads_go_on() {
	local name

	for name in "${!loads[@]}"; do
		load_goes_on "the load of $name after $1" "$tmp/stop.$name"
	done
}

loads_end() {
	local name status=0

	for name in "${!loads[@]}"; do
		touch "$tmp/stop.$name"
		wait "${loads[$name]}" || status=1
	done
	loads=()
	return $status
}

end_loads() {
	loads_end || fail "an error, or other data, at the disk"
}
