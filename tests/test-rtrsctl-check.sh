#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl check", as a monitoring system runs it: one line, and a status that follows paths that
# are cut, a server that is killed, an export that does not come back, and a program that does not
# answer.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl

# check_is STATUS REGEX [ARGUMENT...]: the exit status, and the one line, all of it.
check_is() {
	local want=$1 regex=$2 status=0
	shift 2
	"$rtrsctl" check "$@" >"$tmp/check" 2>"$tmp/check.err" || status=$?
	cat "$tmp/check"
	[ $status -eq "$want" ] || fail "status $status instead of $want"
	[ "$(wc -l <"$tmp/check")" -eq 1 ] || fail "not one line"
	[ ! -s "$tmp/check.err" ] || fail "and on standard error: $(cat "$tmp/check.err")"
	grep -q -x -E -- "$regex" "$tmp/check" || fail "does not match '$regex'"
}

# A monitoring system waits for a state.
check_ends() {
	local status=0
	"$rtrsctl" check --gateway >"$tmp/check" 2>&1 || status=$?
	[ $status -eq "$1" ]
}

# Without a program, and with a mistake, the state is unknown.
check_is 3 "RTRS UNKNOWN - no program with a control socket in $RUNTIME_DIRECTORY: is its unit running .*see --socket"
check_is 3 "RTRS UNKNOWN - option '--pdi=4' is unknown, .*" --pdi=4
check_is 3 "RTRS UNKNOWN - --server and --gateway: give one, or none for both kinds" \
	--server --gateway
check_is 3 "RTRS UNKNOWN - check: 'all' is one word too many: this command is .*" all
check_is 3 "RTRS UNKNOWN - 0 sessions, 0 of 0 paths up: $tmp/none: No such file .*" \
	--socket="$tmp/none"

truncate -s 8M "$tmp/disk" "$tmp/other"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk" \
	"other=$tmp/other"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
check_is 0 "RTRS OK - 0 sessions, 0 of 0 paths up \| sessions=0 paths=0 paths_up=0"
start_nbdkit "$first" path="$second" name=disk transport=tcp sessname=vm
wait_until "the paths" check_ends 0
check_is 0 "RTRS OK - 1 session, 2 of 2 paths up \| sessions=1 paths=2 paths_up=2" --gateway
# Each end counts its own.
check_is 0 "RTRS OK - 2 sessions, 4 of 4 paths up \| sessions=2 paths=4 paths_up=4"

# A path that has never come up, with its cause.
third=127.0.0.3:${first##*:}
"$rtrsctl" --gateway path add "$third"
has_cause() { "$rtrsctl" --gateway show | grep -q 'cause .*refused'; }
wait_until "its cause" has_cause
check_is 1 "RTRS WARNING - 1 session, 2 of 3 paths up: [a-z-]+ disk: vm degraded 2/3, \
without $third \(Connection refused .*\) \| sessions=1 paths=3 paths_up=2" --gateway
"$rtrsctl" --gateway path remove "$third"

# One path less, then none.
"$rtrsctl" --gateway path disconnect "$first"
wait_until "its end" check_ends 1
check_is 1 "RTRS WARNING - 1 session, 1 of 2 paths up: [a-z-]+ disk: vm degraded 1/2, \
without $first \| sessions=1 paths=2 paths_up=1" --gateway
"$rtrsctl" --gateway path disconnect "$second"
wait_until "the end of the other" check_ends 2
check_is 2 "RTRS CRITICAL - 1 session, 0 of 2 paths up: [a-z-]+ disk: vm down since [0-9]+ s \
\| sessions=1 paths=2 paths_up=0" --gateway
both_are_closed() {
	[ "$("$rtrsctl" --gateway --json show | grep -o '"state":"closed"' | wc -l)" -eq 2 ]
}
wait_until "the end of both" both_are_closed
"$rtrsctl" --gateway path reconnect "$first"
wait_until "a path" check_ends 1
"$rtrsctl" --gateway path reconnect "$second"
wait_until "the paths" check_ends 0

# A server that is killed leaves a socket, and is no program; its client is down.
: >"$tmp/go"
nbdsh_run "nbd+unix:///disk?socket=$sock" <<END &
import os, time
other = nbd.NBD()
other.connect_uri("nbd+unix:///other?socket=$sock")
open("$tmp/open", "w").close()
while os.path.exists("$tmp/go"):
    time.sleep(0.02)
END
user=$!
wait_until "the export" test -e "$tmp/open"
kill_process "$server_pid"
wait_until "the loss" check_ends 2
check_is 2 "RTRS CRITICAL - 1 session, 0 of 2 paths up: .* disk: vm down since [0-9]+ s: .* refused.* \| .*"
# It comes back without one of two exports that are in use: all paths are up, and requests wait.
start_server --listen "tcp://$first" --listen "tcp://$second" "other=$tmp/other"
is_lost() {
	! check_ends 0 && grep -q ' disk: vm lost' "$tmp/check"
}
wait_until "the paths without the export" is_lost
both_are_up() {
	! check_ends 0 && grep -q -F ' 2 of 2 paths up' "$tmp/check"
}
wait_until "both paths" both_are_up
check_is 2 "RTRS CRITICAL - 1 session, 2 of 2 paths up: [a-z-]+ disk: vm lost \(the server does not \
open the export again, and requests wait: the server has no such export for this client\) \| .*" \
	--gateway
rm "$tmp/go"
expect_exit $user 0
stop_server "$server_pid"

# A program that stands still is found by the name of its socket, and nothing is known of it.
socket=$RUNTIME_DIRECTORY/$NBD_FRONT-$nbdkit_pid.sock
stop_all_threads "$nbdkit_pid"
check_is 3 "RTRS UNKNOWN - 0 sessions, 0 of 0 paths up: $socket: the program does not answer \| .*"
# Other commands wait for longer, and say so.
"$rtrsctl" --socket="$socket" show >"$tmp/show" 2>"$tmp/show.err" &
show_pid=$!
wait_line "$tmp/show.err" \
	"^rtrsctl: $socket: the program has not answered for 5 s: waiting for 60 s\$"
# It is found when those who ask have filled its queue, too.
/usr/bin/python3 -c '
import socket, sys
while True:
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(sys.argv[1])
    except BlockingIOError:
        break' "$socket"
check_is 3 "RTRS UNKNOWN - 0 sessions, 0 of 0 paths up: $socket: the program does not answer \| .*"
kill -CONT "$nbdkit_pid"
expect_exit "$show_pid" 0
[ -s "$tmp/show" ] && [ "$(wc -l <"$tmp/show.err")" -eq 1 ]
stop_process "$nbdkit_pid"
# What follows has no gateway.
[ "$NBD_FRONT" = nbdkit ] || exit 0

# A program that answers byte by byte, without an end, does not answer.
cat >"$tmp/drips.py" <<'END'
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(16)
print("listens", flush=True)
client = s.accept()[0]
try:
    client.sendall(b"{")
    while True:
        time.sleep(0.1)
        client.sendall(b" ")
except OSError:
    print("gone", flush=True)
END
/usr/bin/python3 "$tmp/drips.py" "$tmp/drips" >"$tmp/drips.out" &
cleanup_fn kill_process $!
wait_line "$tmp/drips.out" listens
timeout "$TIMEOUT_S" "$rtrsctl" check --socket="$tmp/drips" >"$tmp/check" && fail "no loss"
grep -q -x -E "RTRS UNKNOWN - .*: $tmp/drips: the program does not answer \| .*" "$tmp/check"
wait_line "$tmp/drips.out" gone

# Programs made by hand: {name: {session: states of paths}}; of several the worst counts.  A session
# "sync failed" is an export, whose sync has failed; "ages" are the ages of the oldest requests
# of "good" and of all sessions, and the io-timeout, in ms; "flaps" are those of a server.
cat >"$tmp/programs.py" <<'END'
import json, os, selectors, socket, sys
directory, programs = sys.argv[1], json.loads(sys.argv[2])
waits = selectors.DefaultSelector()
for name, sessions in programs.items():
    s = socket.socket(socket.AF_UNIX)
    s.bind(directory + "/" + name)
    os.chmod(directory + "/" + name, 0o600)
    s.listen(16)
    lost = sessions.pop("sync failed", [])
    flaps = sessions.pop("flaps", [])
    age, of_sessions, timeout = [ms * 10**6 for ms in sessions.pop("ages", [0, 0, 0])]
    answer = {"ok": True, "program": "rtrs-nbd", "name": name, "pid": 1, "exports": [
        {"name": n, "sync_failed": n in lost, "oldest_ns": 0 if n in lost else age}
        for n in ["good"] + lost], "io_timeout_ns": timeout, "flaps": flaps, "sessions": [
        {"name": n, "state": "up" if "connected" in states else "down",
         "down_ns": 7 * 10**9, "oldest_ns": of_sessions, "devices": [],
         "paths": [{"name": "%s%d" % (n, i), "state": p} for i, p in enumerate(states)]}
        for n, states in sessions.items()]}
    waits.register(s, selectors.EVENT_READ, answer)
print("listens", flush=True)
while True:
    for key, _ in waits.select():
        client = key.fileobj.accept()[0]
        command = json.loads(client.recv(4096))["command"]
        # The one without a session refuses.
        answer = key.data
        if command != "list" and not answer["sessions"]:
            answer = {"ok": False, "error": "busy|now"}
        try:
            client.sendall(json.dumps(answer).encode() + b"\n")
        except BrokenPipeError:
            pass            # nobody waited so long for the answer
        client.close()
END
# programs JSON: instead of those before.
programs_pid=''
programs() {
	[ -z "$programs_pid" ] || kill_process "$programs_pid"
	rm -rf "$RUNTIME_DIRECTORY" "$tmp/programs.out"
	mkdir "$RUNTIME_DIRECTORY"
	/usr/bin/python3 "$tmp/programs.py" "$RUNTIME_DIRECTORY" "$1" >"$tmp/programs.out" &
	programs_pid=$!
	cleanup_fn kill_process $programs_pid
	wait_line "$tmp/programs.out" listens
}
up='"s": ["connected", "connected"]'
degraded='"d": ["connected", "back-off"]'
down='"l": ["closed"]'
programs "{\"a\": {$up}, \"b\": {$degraded}}"
check_is 1 "RTRS WARNING - 2 sessions, 3 of 4 paths up: rtrs-nbd b: d degraded 1/2, without d1 .*"
programs "{\"a\": {$degraded}, \"b\": {}}"
check_is 3 "RTRS UNKNOWN - 1 session, .*: rtrs-nbd a: d degraded 1/2, without d1; busy\?now \| .*"
programs "{\"a\": {$down}, \"b\": {}, \"c\": {$degraded}}"
check_is 2 "RTRS CRITICAL - 2 sessions, 1 of 3 paths up: rtrs-nbd a: l down since 7 s; busy.* \| .*"
# An export that may have lost writes is worse than all that its sessions have.
lost='"sync failed": ["d|x"]'
programs "{\"a\": {$up, $lost}, \"b\": {}, \"c\": {$degraded}}"
check_is 2 "RTRS CRITICAL - 2 sessions, 3 of 4 paths up: rtrs-nbd a: d\?x sync failed, \
writes may be lost; busy\?now; rtrs-nbd c: d degraded 1/2, without d1 \| .*"
status=0
"$rtrsctl" --name a status >"$tmp/status" || status=$?
[ $status -eq 3 ] || fail "status $status of a lost export"
cat "$tmp/status"
grep -E '^d\|x .* sync failed ' "$tmp/status"
must_fail grep -E '^good .* sync failed ' "$tmp/status"
# The age of the oldest request: of an export, and else of a session.
ages_are() { programs "{\"a\": {$up, \"ages\": [$1]}}"; }
old='has a request that waits'
ages_are "4999, 4999, 0"
check_is 0 "RTRS OK - .*"
ages_are "5000, 5000, 0"
check_is 1 "RTRS WARNING - 1 session, 2 of 2 paths up: rtrs-nbd a: good $old 5 s \| .*"
ages_are "29999, 29999, 0"
check_is 1 "RTRS WARNING - .*: good $old 29 s \| .*"
ages_are "30000, 30000, 0"
check_is 2 "RTRS CRITICAL - .*: good $old 30 s \| .*"
ages_are "10000, 10000, 20000"
check_is 2 "RTRS CRITICAL - .*: good $old 10 s \| .*"
ages_are "9999, 9999, 20000"
check_is 1 "RTRS WARNING - .*: good $old 9 s \| .*"
ages_are "4999, 4999, 2000"
check_is 0 "RTRS OK - .*"
ages_are "5000, 5000, 2000"
check_is 2 "RTRS CRITICAL - .*: good $old 5 s \| .*"
ages_are "29999, 29999, 120000"
check_is 1 "RTRS WARNING - .*"
ages_are "0, 30000, 0"
check_is 2 "RTRS CRITICAL - .*: rtrs-nbd a: s $old 30 s \| .*"
# A path that flaps, of a session that is up, and of one that has gone.
flap='"path": "s/P", "session": "s", "identity": "psk:x", "ups": 4, "since_ns": 130000000000,
	"up_ns": 7000000000, "lost_ns": 5000000000, "cause": "gone|away"'
programs "{\"a\": {$up, \"flaps\": [{$flap}]}}"
flaps='came up 4 times in 2 min, last lost 5 s ago: gone[?]away; what does rtrsctl check say at the client, and do large .*[?]'
check_is 1 "RTRS WARNING - 1 session, 2 of 2 paths up: rtrs-nbd a: s/P $flaps \| .*"
programs "{\"a\": {$degraded, \"flaps\": [{$flap}]}}"
check_is 1 "RTRS WARNING - 1 session, 1 of 2 paths up: rtrs-nbd a: d degraded 1/2, without d1; \
rtrs-nbd a: s/P $flaps \| .*"
programs "{\"a\": {$up}, \"c\": {$degraded}}"
# One program by name is not the worse for others.
check_is 1 "RTRS WARNING - 1 session, .*" --name c
# Four problems are told; a name has no part in the numbers behind the bar.
programs '{"a": {"x|y=1": ["closed"], "2": ["closed"], "3": ["closed"], "4": ["closed"],
	"5": ["closed"], "6": ["closed"]}}'
check_is 2 "RTRS CRITICAL - 6 sessions, 0 of 6 paths up: rtrs-nbd a: x\?y=1 down[^|]*; \
rtrs-nbd a: 4 down since 7 s; and 2 more \| sessions=6 paths=6 paths_up=0"
status=0
"$rtrsctl" --json check >"$tmp/check" || status=$?
[ $status -eq 2 ] || fail "status $status with --json"
/usr/bin/python3 - "$tmp/check" <<'END'
import json, sys
a = json.load(open(sys.argv[1]))
assert len(a.pop("problems")) == 6, a
assert a == {"ok": True, "level": "CRITICAL", "programs": 1, "sessions": 6, "paths": 6,
             "paths_up": 0}, a
END
