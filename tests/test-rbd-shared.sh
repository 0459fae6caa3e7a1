#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two servers share two images of a real Ceph (shared=yes), and the client has a path to each: when
# the server that writes is killed, frozen, or cut off, the other one breaks its lock and goes on,
# and a server that thaws is fenced.  Nothing fails, no byte is wrong, and what a FLUSH answered for
# is in the image.
# RBD_SHARED=N: N faults of each kind (check.sh --full=rbd: 50).
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires fio --enghelp=nbd
requires nbdsh --version
requires curl --version
. "$top_srcdir/tests/ceph.sh"
. "$top_srcdir/tests/shared-load.sh"
. "$top_srcdir/tests/wires.sh"
faults=${RBD_SHARED:-2}
# Many faults lie so far apart that no server has to wait before it breaks the lock.
frozen_s=1
[ "$faults" -le 4 ] || frozen_s=20

# Files and memory have no lock that fences.
truncate -s 8M "$tmp/file"
must_fail "$RTRS_SERVER" --strict --control "$tmp/refused.ctl" --state-dir "$tmp/refused.state" \
	--listen tcp://127.0.0.1:0 "d=$tmp/file,shared=yes" 2>"$tmp/refused"
grep 'no lock of a file system fences' "$tmp/refused"
must_fail "$RTRS_SERVER" --check "d=mem:8M,shared=yes" 2>"$tmp/refused"
grep 'shared=yes: memory cannot be shared' "$tmp/refused"
must_fail "$RTRS_SERVER" --check "d=rbd:rbd/disk,shared=maybe" 2>"$tmp/refused"
grep "shared='maybe': expected yes or no" "$tmp/refused"

# Both servers and the cluster are in one network namespace, the client is in another, with a cable
# to each server.
wires_up
CEPH_NET=$SERVER_NET
ceph_start
image disk 64M
image flushed 16M
declare -A cable=([a]=1 [b]=2)
declare -A pid log
serve() {
	mkdir -p "$tmp/$1.state"
	SERVER_PREFIX=$SERVER_NET start_server --listen "tcp://10.77.${cable[$1]}.2:1234" \
		--control "$tmp/$1.ctl" --state-dir "$tmp/$1.state" \
		"disk=$(image_spec disk),shared=yes" "flushed=$(image_spec flushed),shared=yes"
	pid[$1]=$server_pid
	log[$1]=$server_log
}
one_owner() { [ "$(owns a disk && echo a; owns b disk && echo b)" = "$(owner)" ]; }
long_enough() { [ $((SECONDS - frozen)) -ge "$frozen_s" ]; }

serve a
serve b
start_nbdkit path=10.77.1.2:1234 path=10.77.2.2:1234 \
	"heartbeat=$HEARTBEAT_MS" "heartbeat-misses=$HEARTBEAT_MISSES" \
	"io-timeout=$((10 * TIMEOUT_S))" metrics="unix:$tmp/metrics.sock"
wait_until "a path that stands by" stands_by
# It is as good as one that is up: no alert.
[ "$(curl -s --unix-socket "$tmp/metrics.sock" http://localhost/metrics |
	grep -c '^rtrs_client_path_up{.*} 1$')" -eq 2 ]
shared_load_start
goes_on "the start"
# Another client, at either server: the lock, and who has the export open.
# kept_elsewhere ADDRESS: a client may not write there.
kept_elsewhere() {
	# shellcheck disable=SC2086 # words
	! timeout "$TIMEOUT_S" $CLIENT_NET "$top_builddir/rtrs-bench" --number-ios=1 \
		--rw=randwrite "$1" disk >"$tmp/kept" 2>&1 &&
		grep -E "another server keeps the lock of its storage" "$tmp/kept"
}
explains() {
	! timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/$1.ctl" explain \
		disk 10.77.9.9 >"$tmp/said"
}
# heads_explain: a session has one server, so both exports are with it.  False when a path was lost
# on a busy machine, and the client took the lock to the other server meanwhile.
heads_explain() {
	local at other

	at=$(owner)
	other=$(other_than "$at")
	owns "$at" flushed && ! owns "$other" disk || return 1
	explains "$at" &&
		grep -E '^passes +lock +this server has the lock' "$tmp/said" &&
		grep -E '^10\.77\.9\.9 may not open disk: use$' "$tmp/said" || return 1
	# Nobody has opened it there until kept_elsewhere(), or an earlier turn of this, does.
	explains "$other" &&
		grep -E '^depends +lock +another .*for writing$|^depends +lock .*; the last try: ' \
			"$tmp/said" &&
		grep -E '^whether 10\.77\.9\.9 may open disk depends: lock$' "$tmp/said" || return 1
	# A slow cluster has not answered yet when the first OPEN is.
	kept_elsewhere "10.77.${cable[$other]}.2:1234" &&
		explains "$other" &&
		grep -E '^depends +lock .*; the last try: .*' "$tmp/said"
}
wait_until "what both servers explain" heads_explain

shared_kills "$faults"

# A frozen server may think that it is the owner: its requests fail in the cluster, and no client
# sees their answers.
for ((turn = 0; turn < faults; turn++)); do
	at=$(owner)
	stop_all_threads "${pid[$at]}"
	frozen=$SECONDS
	goes_on "server $at was frozen"
	wait_until "the end of the frost" long_enough
	kill -CONT "${pid[$at]}"
	wait_until "a path that stands by" stands_by
	# On a slow machine the client may have come back to it meanwhile.
	wait_until "one owner" one_owner
done

# The network is split: the server still has the cluster, and the client only the other one.
for ((turn = 0; turn < faults; turn++)); do
	at=$(owner)
	pull "${cable[$at]}"
	frozen=$SECONDS
	goes_on "the cable to $at was cut"
	wait_until "the end of the cut" long_enough
	plug "${cable[$at]}"
	wait_until "a path that stands by" stands_by
done

# Power fails: what was flushed is in the image, by another reader.
flushed=$(flushed_by_now)
at=$(owner)
kill_process "${pid[$at]}"
flushed_check "$flushed"
goes_on "the end of faults"
shared_load_end
# Until the path is lost, until the owner has had its second, and until the locks of one export
# after the other are broken; unless the machine is too slow for the heartbeats of this test.  The
# slack is for a cluster on a busy machine; the time-outs that this would find are of 30 s and more.
lost=$(grep -c 'lost: ' "$nbdkit_log")
if [ "$lost" -eq $((3 * faults + 1)) ]; then
	[ "$(cat "$tmp/longest")" -lt $((DETECT_MS + 1000 + 2 * 1000 + 12 * SLACK_MS)) ]
else
	echo "$lost paths were lost: other than by faults of the test; the pause is not judged"
fi

# The commands of rtrs-guide(7): what they print for one server is typed for both.
image disk3 64M
rbd_ rm --no-progress rbd/disk3
ceph_user rtrs mon 'profile rbd' osd 'profile rbd pool=rbd'
serve_head() {
	SERVER_PREFIX=$SERVER_NET start_server \
		--config "$tmp/$head/etc/rtrs-server.conf" --control "$tmp/$head.ctl" \
		--state-dir "$tmp/$head.state"
	pid[$head]=$server_pid
	log[$head]=$server_log
}
for head in head1 head2; do
	mkdir -p "$tmp/$head/etc/rtrs-server.conf.d" "$tmp/$head/run" "$tmp/$head.state"
	printf '[server]\nlisten = unix:%s\n' "$tmp/$head.sock" >"$tmp/$head/etc/rtrs-server.conf"
	serve_head
done
rtrsctl() { "$top_builddir/rtrsctl" --socket "$tmp/$head.ctl" "$@"; }
typed=0
type_command() {
	typed=$((typed + 1))
	case $head/$1 in
	"head1/rbd create"*) eval "rbd_ ${1#rbd}" ;;
	*/cat*)
		eval "$1"
		echo "conf = $CEPH_CONF" >>"$tmp/$head/etc/rtrs-server.conf.d/disk3.conf"
		;;
	*/"rtrsctl reload") eval "$1" ;;
	head2/rtrs-nbd*)
		# start_gateway() has a socket of its own.
		[[ $1 =~ ^"rtrs-nbd -U $tmp/head2/run/disk3.sock path=head1 path=head2 "(.*)$ ]]
		start_gateway path="unix:$tmp/head1.sock" path="unix:$tmp/head2.sock" \
			heartbeat=500 heartbeat-misses=2 "${BASH_REMATCH[1]}"
		;;
	"head2/rbd create"* | head1/rtrs-nbd*) ;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $1" ;;
	esac
}
for head in head1 head2; do
	/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" \
		heads "$tmp/$head" >"$tmp/commands"
	while IFS= read -r word <&3; do
		eval "command=$word"
		type_command "$command"
	done 3<"$tmp/commands"
done
[ $typed -eq 8 ]
# The first write finds the lock taken, the second one a dead server.
nbdsh_run "$uri" >"$tmp/heads.log" 2>&1 <<-PY &
import os, time
h.pwrite(b"1" * 4096, 0)
open("$tmp/wrote", "w").close()
while not os.path.exists("$tmp/killed"):
    time.sleep(0.01)
h.pwrite(b"2" * 4096, 4096)
assert h.pread(8192, 0) == b"1" * 4096 + b"2" * 4096
PY
heads=$!
wait_until "a write" test -e "$tmp/wrote"
at=head2
if owns head1 disk3; then at=head1; fi
kill_process "${pid[$at]}"
: >"$tmp/killed"
expect_exit $heads 0

# The other server dies together with its client: nobody asks the first one, which has come again,
# for the lock but the administrator.
head=$at
serve_head
ctl=("$top_builddir/rtrsctl" --socket "$tmp/$head.ctl")
expect_failure 1 "there is no export 'none'" "${ctl[@]}" export break none
nbdsh_run "$uri" <<-PY &
	h.pwrite(b"3" * 4096, 8192)
	open("$tmp/wrote3", "w").close()
	while True:
	    h.poll(-1)
PY
client=$!
wait_until "a write" test -e "$tmp/wrote3"
on=head1
if [ $at = head1 ]; then on=head2; fi
owns $on disk3
stop_all_threads "$gateway_pid"
kill_process "${pid[$on]}"
kill_process "$gateway_pid"
kill_process $client			# ends by itself, if it has noticed
# The cluster takes the dead server for a living one for 30 s.
expect_failure 1 "has its lock, .*; --force takes its lock, and fences it" \
	"${ctl[@]}" export break disk3
"${ctl[@]}" --force export break disk3 | tee "$tmp/told"
grep "^disk3: clients of this server may write now: .* kept its lock, which is broken" "$tmp/told"
grep "disk3: rtrsctl export break, by force, has taken the lock for this server: " "${log[$at]}"
start_gateway server="unix:$tmp/$at.sock" export=disk3
nbdsh_run "$uri" <<-PY
	assert h.pread(12288, 0) == b"1" * 4096 + b"2" * 4096 + b"3" * 4096
	h.pwrite(b"4" * 4096, 0)
PY

echo "$((faults + 1)) killed, $faults frozen and $faults cut off servers, the longest wait" \
	"for a write was $(cat "$tmp/longest") ms"
