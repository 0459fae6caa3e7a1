#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=600
# guest: kernel=6.1 timeout=600 full
# One server exports two multipath devices of device-mapper, each of which has two SCSI paths to one
# disk (shared-disk.sh: two logins).  A path fails, a login is lost with its requests, no path is
# left for a while: no request of a client fails and no byte is wrong.  A path cannot be exported
# beside its map, and the map grows in use.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/shared-disk.sh"
. "$top_srcdir/tests/shared-load.sh"
requires_server; requires_plugin
requires fio --enghelp=nbd
requires nbdsh --version
requires dmsetup --version
faults=2
mib=$((1 << 20))

# no_udev COMMAND...: there is no udev here that dmsetup could wait for.
no_udev() {
	dmsetup "$@" --noudevrules --noudevsync
}

# The backstores are loop devices, which can grow.
modprobe -a loop dm_multipath dm_service_time
declare -A size=([disk]=$((64 * mib)) [flushed]=$((16 * mib))) loop map
for name in disk flushed; do
	truncate -s "${size[$name]}" "$tmp/$name.img"
	loop[$name]=$(losetup --find --show "$tmp/$name.img")
	cleanup_fn losetup --detach "${loop[$name]}"
done
shared_target_up
for name in disk flushed; do
	shared_store $name "${loop[$name]}" "${size[$name]}"
done
shared_login 1
shared_login 2
image_export() { cp "$tmp/$1.img" "$2"; }

# paths_of NAME: its disks by the logins that last.
paths_of() {
	local n=1 disks login

	if [ "$1" = flushed ]; then n=2; fi
	for login in 1 2; do
		read -ra disks <<<"${disks_of[$login]}"
		if [ ${#disks[@]} -ge $n ]; then echo "${disks[n - 1]}"; fi
	done
}
# table_of NAME: as multipathd makes it, with all paths in one group and a queue while none is left.
table_of() {
	local paths path

	mapfile -t paths < <(paths_of "$1")
	printf '0 %s multipath 1 queue_if_no_path 0 1 1 service-time 0 %s 1' \
		"$(blockdev --getsz "${paths[0]}")" ${#paths[@]}
	for path in "${paths[@]}"; do
		printf ' %s 1' "$(cat "/sys/class/block/${path#/dev/}/dev")"
	done
	echo
}
map_up() {
	local paths wwid

	mapfile -t paths < <(paths_of "$1")
	wwid=$(cat "/sys/class/block/${paths[0]#/dev/}/device/wwid")
	[ "$(cat "/sys/class/block/${paths[1]#/dev/}/device/wwid")" = "$wwid" ]
	no_udev create "mp-$1" --uuid "mpath-$wwid" --table "$(table_of "$1")"
	cleanup_fn no_udev remove --retry "mp-$1"
	map[$1]=/dev/dm-$(dmsetup info -c --noheadings -o minor "mp-$1")
	wait_until "${map[$1]}" test -b "${map[$1]}"
}
map_reload() {
	no_udev suspend --noflush --nolockfs "mp-$1"
	no_udev load "mp-$1" --table "$(table_of "$1")"
	no_udev resume "mp-$1"
}
# paths_are NAME LETTERS: A for each path that works, F for one that failed, as its table says.
paths_are() {
	[ "$(dmsetup status "mp-$1" | grep -oE '[0-9]+:[0-9]+ [AF]' | cut -d ' ' -f 2 |
		sort | tr -d '\n')" = "$2" ]
}
# path_set PATH STATE: "offline" or "running".
path_set() { echo "$2" >"/sys/class/block/${1#/dev/}/device/state"; }
# path_back NAME PATH: what multipathd does when its checker finds the path again.
path_back() {
	path_set "$2" running
	dmsetup message "mp-$1" 0 "reinstate_path $(cat "/sys/class/block/${2#/dev/}/dev")"
}
# carries PATH: writes come on it, from now on.
writes_of() { awk '{ print $5 }' "/sys/class/block/${1#/dev/}/stat"; }
writes_above() { [ "$(writes_of "$1")" -gt "$2" ]; }
carries() { wait_until "writes on the path $1" writes_above "$1" "$(($(writes_of "$1") + 8))"; }
for name in disk flushed; do
	map_up "$name"
	paths_are "$name" AA
done

serve() {
	mkdir -p "$tmp/state-dir"
	start_server --listen tcp://127.0.0.1:1235 --control "$tmp/server.ctl" \
		--state-dir "$tmp/state-dir" "disk=${map[disk]},direct" \
		"flushed=${map[flushed]},direct"
}
rtrsctl() { "$top_builddir/rtrsctl" --socket "$tmp/server.ctl" "$@"; }

echo "a path of a map, and a map that two servers would share"
refused() {
	must_fail "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 \
		--state-dir "$tmp/refused.state" \
		--control "$tmp/refused.ctl" "$2" 2>"$tmp/refused"
	cat "$tmp/refused"
	grep -q "$1" "$tmp/refused"
}
for path in $(paths_of disk); do
	refused "'$path' is in use by ${map[disk]#/dev/} (mp-disk)" "d=$path"
done
refused "'${map[disk]}' is made by device-mapper" "d=${map[disk]},shared=yes"

serve
refused "'$path' is in use by ${map[disk]#/dev/} (mp-disk)" "d=$path"
start_nbdkit path=127.0.0.1:1235 heartbeat=200 heartbeat-misses=5 "io-timeout=$((10 * TIMEOUT_S))"
shared_load_start
goes_on "the start"

for ((turn = 0; turn < faults; turn++)); do
	echo "a path goes offline, turn $turn"
	path=$(paths_of disk | sed -n "$((turn % 2 + 1))p")
	path_set "$path" offline
	wait_until "a failed path" paths_are disk AF
	goes_on "path $path went offline"
	path_back disk "$path"
	paths_are disk AA
	carries "$path"
done

for ((turn = 0; turn < faults; turn++)); do
	login=$((turn % 2 + 1))
	echo "login $login is lost with all of its requests, turn $turn"
	shared_logout $login
	wait_until "a failed path" paths_are disk AF
	wait_until "a failed path" paths_are flushed AF
	goes_on "login $login was lost"
	# Nothing else has the old disks.
	map_reload disk
	map_reload flushed
	shared_login $login
	map_reload disk
	map_reload flushed
	paths_are disk AA
	paths_are flushed AA
	for path in ${disks_of[$login]}; do carries "$path"; done
done

echo "no path is left for a while"
mapfile -t paths < <(paths_of disk)
for path in "${paths[@]}"; do path_set "$path" offline; done
wait_until "the loss of all paths" paths_are disk FF
waits() {
	rtrsctl --json show | /usr/bin/python3 -c '
import json, sys
disk, = (e for e in json.load(sys.stdin)["exports"] if e["name"] == "disk")
sys.exit(disk["waiting_ns"] < 1e9)'
}
wait_until "requests that wait for the storage" waits
for path in "${paths[@]}"; do path_back disk "$path"; done
for path in "${paths[@]}"; do carries "$path"; done

echo "the server is killed, and what was flushed is on the disk"
# During a sync it would cost the client an EIO (doc/decisions.md D13).
flushes_hold
flushed=$(flushed_by_now)
kill_process "$server_pid"
flushed_check "$flushed"
serve
flushes_go_on
goes_on "the restart of the server"

echo "the map grows"
truncate -s $((96 * mib)) "$tmp/disk.img"
losetup --set-capacity "${loop[disk]}"
grown() { [ "$(blockdev --getsize64 "$1")" -eq $((96 * mib)) ]; }
for path in $(paths_of disk); do
	echo 1 >"/sys/class/block/${path#/dev/}/device/rescan"
	wait_until "the new size of $path" grown "$path"
done
map_reload disk
grown "${map[disk]}"
rtrsctl export resize disk
nbdsh -u "$(at disk)" -c - <<-PY
	assert h.get_size() == 96 << 20, h.get_size()
	h.pwrite(b"g" * 65536, (96 << 20) - 65536)
	h.flush()
PY
[ "$(tail -c 65536 "$tmp/disk.img" | tr -d g | wc -c)" -eq 0 ]
goes_on "the map grew"
shared_load_end

# The commands of rtrs-guide(7), on a guest without multipathd: the same bytes by the export and by
# the file behind all paths.
stop_server "$server_pid"
mkdir -p "$tmp/guide/etc/rtrs-server.conf.d"
printf '[server]\nlisten = unix:%s\n' "$tmp/guide/sock" >"$tmp/guide/etc/rtrs-server.conf"
guide_server() {
	start_server --config "$tmp/guide/etc/rtrs-server.conf" --control "$tmp/server.ctl" \
		--state-dir "$tmp/state-dir"
}
guide_server
typed=0
/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" \
	multipath "$tmp/guide" >"$tmp/commands"
while IFS= read -r word <&3; do
	eval "command=$word"
	typed=$((typed + 1))
	case $command in
	"systemctl reload multipathd" | "systemctl daemon-reload") ;;
	"systemctl restart rtrs-server") stop_server "$server_pid"; guide_server ;;
	"mkdir -p $tmp"* | "cat > $tmp"*) eval "${command/\/dev\/mapper\/mpatha/${map[disk]}}" ;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $command" ;;
	esac
done 3<"$tmp/commands"
[ $typed -eq 7 ]
# As table_of() has it.
grep -q '^ *no_path_retry queue$' "$tmp/guide/etc/multipath.conf"
start_nbdkit server="unix:$tmp/guide/sock" export=disk5
nbdcopy "$uri" "$tmp/copy.img"
cmp "$tmp/disk.img" "$tmp/copy.img"
