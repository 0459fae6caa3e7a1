#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=300
# guest: kernel=6.1 timeout=300 full
# The commands of rtrs-guide(7) for two servers before one SCSI disk (shared-disk.sh), with no more
# capabilities than the guide gives them.  A server dies together with its client: the administrator
# has the other one take the disk.  Both servers go for good: one on a third host takes the disk.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/shared-disk.sh"
requires_server
requires nbdsh --version
requires setpriv --version
[ -x "$RTRS_NBD" ] || skip "rtrs-nbd is not built"
host=$top_builddir/tests/guest/pr-host

shared_target_up
truncate -s 16M "$tmp/disk.img"
shared_store disk "$tmp/disk.img" $((16 << 20))
declare -A disk pid log
for login in 1 2 3; do
	shared_login $login
	disk[head$login]=${disks_of[$login]% }
done
# The holder as the third host sees it, which has no key yet: "free", or "other".
holder() { "$host" "${disk[head3]}" 1 look | cut -d ' ' -f 2; }
keys() { "$host" "${disk[head3]}" 1 look | sed 's/.* others=\([0-9]*\) .*/\1/'; }

# The capabilities of the unit, as setpriv has them.
bounds() {
	sed -n "s/^$1=//p" "$tmp/$head/etc/systemd/system/rtrs-server.service.d/shared.conf" |
		tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g'
}
serve() {
	[ "$(bounds AmbientCapabilities)" = "$(bounds CapabilityBoundingSet)" ]
	SERVER_PREFIX="setpriv --bounding-set=-all,$(bounds CapabilityBoundingSet)" start_server \
		--config "$tmp/$head/etc/rtrs-server.conf" --control "$tmp/$head/ctl" \
		--state-dir "$tmp/$head/state"
	pid[$head]=$server_pid
	log[$head]=$server_log
}
rtrsctl() { "$top_builddir/rtrsctl" --socket "$tmp/$head/ctl" "$@"; }
systemctl() { [ "$*" != "restart rtrs-server" ] || serve; }
typed=0
type_command() {
	typed=$((typed + 1))
	case $1 in
	"mkdir -p $tmp"* | systemctl*) eval "$1" ;;
	"cat > $tmp"*)
		eval "${1/\/dev\/disk\/by-id\/wwn-0x5000c500a1b2c3d4/${disk[$head]}}"
		;;
	"rtrs-nbd -U $tmp/$head/run/disk4.sock path=head1 path=head2 "*)
		[ "$head" = head2 ] || return 0
		start_gateway path="unix:$tmp/head1/sock" path="unix:$tmp/head2/sock" \
			heartbeat=200 heartbeat-misses=3 "${1##*path=head2 }"
		;;
	"rtrsctl --force export break disk4") break_command=$1 ;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $1" ;;
	esac
}
# type_guide HEAD: the section's commands, on that host.
type_guide() {
	head=$1
	mkdir -p "$tmp/$head"/{etc/rtrs-server.conf.d,run,state}
	printf '[server]\nlisten = unix:%s\n' "$tmp/$head/sock" >"$tmp/$head/etc/rtrs-server.conf"
	/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" \
		disk "$tmp/$head" >"$tmp/commands"
	while IFS= read -r word <&3; do
		eval "command=$word"
		type_command "$command"
	done 3<"$tmp/commands"
}
type_guide head1
type_guide head2
[ $typed -eq 14 ]

echo "the server that writes dies, and its client with it"
nbdsh_run "$uri" <<-PY &
	import os, time
	h.pwrite(b"1" * 4096 + b"2" * 4096, 0)
	open("$tmp/wrote", "w").close()
	while True:
	    h.poll(-1)
PY
client=$!
wait_until "a write" test -e "$tmp/wrote"
at=head1
head=head1
rtrsctl --json show | grep -q '"ana_state": *"optimized"' || at=head2
# The gateway would ask the other server.
stop_all_threads "$gateway_pid"
kill_process "${pid[$at]}"
kill_process "$gateway_pid"
kill_process $client
[ "$(holder)" = other ]
[ "$(keys)" = 2 ]
if [ $at = head1 ]; then head=head2; else head=head1; fi
ctl=("$top_builddir/rtrsctl" --socket "$tmp/$head/ctl")
# Nobody knows that the owner is dead.
expect_failure 1 "the host with the key 0x.* has its lock.*; --force takes its lock, and" \
	"${ctl[@]}" export break disk4
expect_failure 1 "there is no export 'other'" "${ctl[@]}" export break other
[ "$(holder)" = other ]
eval "$break_command" | tee "$tmp/told"
grep -q "disk4: clients of this server may write now: the host with the key 0x.* kept its" \
	"$tmp/told"
grep -q "disk4: rtrsctl export break, by force, has taken the lock for this server: the host" \
	"${log[$head]}"
[ "$(keys)" = 1 ]
start_gateway server="unix:$tmp/$head/sock" export=disk4
nbdsh_run "$uri" <<-PY &
	assert h.pread(8192, 0) == b"1" * 4096 + b"2" * 4096
	h.pwrite(b"3" * 4096, 8192)
	open("$tmp/wrote3", "w").close()
	while True:
	    h.poll(-1)
PY
client=$!
wait_until "a write" test -e "$tmp/wrote3"

echo "both hosts have gone for good, one with the reservation"
head=$at
serve
[ "$(keys)" = 2 ]
kill_process "${pid[head1]}"
kill_process "${pid[head2]}"
kill_process "$gateway_pid"
kill_process $client
[ "$(holder)" = other ]
type_guide head3
grep -q "disk4: no client can write: '.*' holds the keys of 2 other hosts, and only two hosts may" \
	"${log[head3]}"
# The old hosts could go on without it.
[ "$(keys)" = 2 ]
ctl=("$top_builddir/rtrsctl" --socket "$tmp/$head/ctl")
expect_failure 1 "holds the keys of 2 other hosts" "${ctl[@]}" export break disk4
eval "$break_command" >"$tmp/told"
grep -q "the host with the key 0x.* kept its reservation, which this server takes" "$tmp/told"
[ "$(grep -c "disk4: the key 0x.* of another host is removed" "${log[head3]}")" -eq 1 ]
[ "$(keys)" = 1 ]
start_gateway server="unix:$tmp/head3/sock" export=disk4
nbdsh_run "$uri" <<-PY
	assert h.pread(12288, 0) == b"1" * 4096 + b"2" * 4096 + b"3" * 4096
	h.pwrite(b"4" * 4096, 12288)
	h.flush()
PY
[ "$(dd if="$tmp/disk.img" bs=4096 skip=3 count=1 status=none | tr -d 4 | wc -c)" -eq 0 ]
