#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A Ceph that is silent: an image that is added is given up after a while, other exports come
# meanwhile or are told for whom they wait, the log says for whom a start waits, and SIGTERM ends
# the server in any of it, with many images as soon as with one.
. ./tests/functions.sh
requires_server; requires_gateway
requires_plain_build
CEPH_LEASE_RATIO=30
. "$top_srcdir/tests/ceph.sh"
limit_s=4			# client_mount_timeout
let_go_s=10			# STORE_RBD_STOP_S

rtrsctl() { timeout $((2 * TIMEOUT_S)) "$top_builddir/rtrsctl" --socket "$tmp/control" "$@"; }

ceph_start
images=()
for name in a b c d e f g h; do
	image $name 8M
	images+=("$name=$(image_spec $name)")
done
with_limit() { cat "$CEPH_CONF" - <<<"[client]"$'\n'"client mount timeout = $1"; }
with_limit $limit_s >"$tmp/short.conf"
# Whoever waits this long has not heard of SIGTERM.
with_limit $((100 * TIMEOUT_S)) >"$tmp/long.conf"
mon_pid=$(cat "$ceph_dir/run/mon.a.pid")

# The osds are silent while an image is added.
start_server --control "$tmp/control" --state-dir "$tmp/s1" mem=mem:8M
osd_freeze
rtrsctl export add "a=rbd:rbd/a,conf=$tmp/short.conf" >"$tmp/added" 2>&1 &
adding=$!
# Whoever comes meanwhile waits, and the log says for whom; if nobody waits for the answer, too.
a_is_waited_for() {
	timeout 1 "$top_builddir/rtrsctl" --socket "$tmp/control" export resize none || true
	grep -F "export resize waits: another change is being carried out: export 'a' (rbd:rbd/a) \
comes" "$server_log"
}
wait_until "a word of the add that waits" a_is_waited_for
rtrsctl export add other=mem:8M
expect_exit $adding 1
grep -E "export 'a': 'rbd:rbd/a' cannot be opened: the osds of the cluster do not answer for \
$limit_s s \(client_mount_timeout\): are they up" "$tmp/added"
rtrsctl export remove other
osd_thaw
wait_until "the osd" osd_is_up
rtrsctl export add "a=rbd:rbd/a,conf=$tmp/short.conf"
rtrsctl export remove a

# A monitor is.
stop_all_threads "$mon_pid"
expect_failure 1 "export 'b': 'rbd:rbd/b' cannot be opened: .*monitor" \
	"$top_builddir/rtrsctl" --socket "$tmp/control" \
		export add "b=rbd:rbd/b,conf=$tmp/short.conf"
kill -CONT "$mon_pid"
wait_until "the monitor" ceph_ -s

# The end of the server ends the wait, and the log has said for whom it is.
osd_freeze
rtrsctl export add "c=rbd:rbd/c,conf=$tmp/long.conf" >"$tmp/added" 2>&1 &
adding=$!
wait_line "$server_log" "c: 'rbd:rbd/c': waiting for the osds of the cluster"
[ "$(grep -c "c: 'rbd:rbd/c': waiting for the osds" "$server_log")" -eq 1 ]
wait_line "$server_log" \
	"c: 'rbd:rbd/c': still waiting for the osds of the cluster: .* has the user capabilities"
kill -TERM "$server_pid"
expect_exit "$server_pid" 0
expect_exit $adding 1
grep "the server stops" "$tmp/added"

# So does the end of a start.
for sig in TERM INT; do
	# A shell's child in the background ignores SIGINT.
	env --default-signal=INT "$RTRS_SERVER" --listen "unix:$tmp/start.sock" \
		"a=$(image_spec a)" >"$tmp/start.$sig.log" 2>&1 &
	pid=$!
	cleanup_fn kill_process $pid
	wait_line "$tmp/start.$sig.log" "a: 'rbd:rbd/a': waiting for the osds of the cluster"
	kill -$sig $pid
	expect_exit $pid $((128 + $(kill -l $sig)))
done
osd_thaw
wait_until "the osd" osd_is_up

# All images are let go of together: one after the other they would take more than $TIMEOUT_S s.  One
# that is removed meanwhile from another server is let go of, too, and that server goes on.
start_server --control "$tmp/all.ctl" --state-dir "$tmp/s2" "${images[@]:1}"
all_pid=$server_pid all_log=$server_log
start_server --control "$tmp/control" --state-dir "$tmp/s3" "a=$(image_spec a)" mem=mem:8M
osd_freeze
kill -TERM "$all_pid"
rtrsctl export remove a
expect_exit "$all_pid" 0
[ "$(grep -c "the cluster has not answered for $let_go_s s: the image will be closed" \
	"$all_log")" -eq $((${#images[@]} - 1)) ]
wait_line "$server_log" "a: 'rbd:rbd/a': the cluster has not answered for $let_go_s s"
rtrsctl export add other=mem:8M
osd_thaw
wait_until "the osd" osd_is_up
# The image is closed now, and its lock is free.
unlocked() { ! rbd_ lock ls "rbd/$1" | grep '^client'; }
wait_until "the lock" unlocked a
stop_process "$server_pid"

# A server that takes the lock of a shared image for a client, or gives it back, says so.  If it is
# to stop, it waits for the cluster, but not for ever.  No server has had the locks of these images.
for name in i j k l; do
	image $name 8M
done
shared() {
	start_server --control "$tmp/control.$1" --state-dir "$tmp/s.$1" \
		--listen "unix:$tmp/$1.sock" "$1=$(image_spec $1),shared=yes"
}
# waits LOG IMAGE FOR-WHAT
waits() { wait_line "$1" "$2: 'rbd:rbd/$2': waiting for the cluster, $3"; }
# gives_back IMAGE: the last writer goes while the osd stands still.
gives_back() {
	shared $1
	start_gateway "server=unix:$tmp/$1.sock" export=$1
	rm -f "$tmp/hold"
	mkfifo "$tmp/hold"
	nbdsh -u "nbd+unix:///$1?socket=$sock" -c 'h.pwrite(b"w" * 4096, 0)' \
		-c 'open("'"$tmp/hold"'").read()' &
	exec {hold}>"$tmp/hold"		# the client has written
	must_fail unlocked $1
	osd_freeze
	exec {hold}>&-
}
# ends_by_itself PID LOG FOR-WHAT
ends_by_itself() {
	expect_exit "$1" 0
	grep "the server stops, and has waited for the cluster, $3, for $let_go_s s: another" "$2"
	# The image is the call's, and nobody waits for its end.
	must_fail grep -E 'the cluster has not answered|has taken the store over' "$2"
}
shared i
takes_pid=$server_pid takes_log=$server_log
gives_back k
"$top_builddir/rtrs-bench" --rw=randwrite "unix:$tmp/i.sock" i >"$tmp/bench" 2>&1 &
bench=$!
waits "$takes_log" i 'for its lock'
waits "$server_log" k 'to give its lock back'
kill -TERM "$takes_pid" "$server_pid"
ends_by_itself "$takes_pid" "$takes_log" 'for its lock'
ends_by_itself "$server_pid" "$server_log" 'to give its lock back'
expect_exit $bench 1
osd_thaw
wait_until "the osd" osd_is_up

# A client waits on when the cluster is silent for longer than the server lets an OPEN wait.
shared j
start_gateway "server=unix:$tmp/j.sock"
osd_freeze
nbdsh -u "nbd+unix:///j?socket=$sock" -c 'h.pwrite(b"w" * 4096, 0)' -c 'h.flush()' &
client=$!
wait_line "$server_log" 'open of j as rw refused: '
osd_thaw
expect_exit $client 0
stop_process "$gateway_pid"
stop_server "$server_pid"

# A cluster that answers in time has the lock back when the server has ended, and no other server
# has to wait for it.
gives_back l
waits "$server_log" l 'to give its lock back'
kill -TERM "$server_pid"
pause 1
osd_thaw
expect_exit "$server_pid" 0
wait_until "the osd" osd_is_up
unlocked l
