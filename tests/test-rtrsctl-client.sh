#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl and the plugin: paths come and go while requests run and none fails, and it answers while all paths
# are down.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl

is() {
	[ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"
}

# json EXPRESSION: of the session s, and of its paths p by name
json() {
	ask --json show | /usr/bin/python3 -c "
import json, sys
a = json.load(sys.stdin)
[s] = a['sessions']
p = {x['name']: x for x in s['paths']}
print($1)"
}

ask() {
	"$rtrsctl" --socket "$socket" "$@"
}

state_is() {
	[ "$(json "p['$1']['state']")" = "$2" ]
}

truncate -s 8M "$tmp/disk"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)

start_nbdkit "$first" export=disk transport=tcp
socket=$RUNTIME_DIRECTORY/nbdkit-$nbdkit_pid.sock
is "mode of the socket" "$(stat -c %a "$socket")" 600
wait_until "the path" state_is "$first" connected
is "list" "$(ask list | tail -n 1)" "    path $first"

# Requests without end, until the file is gone.
: >"$tmp/go"
nbdsh_run "$uri" <<END &
import os
n = 0
while os.path.exists("$tmp/go"):
    block = n.to_bytes(4, "big") * 1024
    h.pwrite(block, n % 64 * 4096)
    assert h.pread(4096, n % 64 * 4096) == block
    n += 1
h.flush()
END
io=$!

ask path add "$second"
wait_until "the second path" state_is "$second" connected
expect_failure 1 "there is a path '$second' already" "$rtrsctl" --socket "$socket" path add "$second"
for policy in round-robin min-latency min-inflight; do
	ask policy $policy
	is "policy" "$(json "s['policy']")" $policy
done
for round in 1 2 3; do
	ask path disconnect "$first"
	wait_until "its end" state_is "$first" closed
	expect_failure 1 "path '$first' is not connected" "$rtrsctl" --socket "$socket" path disconnect "$first"
	ask path reconnect "$first"
	wait_until "the first path" state_is "$first" connected
	ask path reconnect "$second"
	wait_until "the second path" state_is "$second" connected
	is "round" "$(json "p['$second']['reconnects'] > 0")" True
	ask path remove "$second"
	is "what is listed" "$(json "list(p)")" "['$first']"
	expect_failure 1 "path '$first' is the last one" "$rtrsctl" --socket "$socket" path remove "$first"
	ask path add "$second"
	wait_until "the second path" state_is "$second" connected
done
# With both cut requests wait, and control does not.
ask path disconnect "$first"
ask path disconnect "$second"
wait_until "the end of both" state_is "$second" closed
wait_until "the end of both" state_is "$first" closed
is "session" "$(json "s['state']")" down
kill -0 $io
ask path reconnect "$second"
wait_until "the second path" state_is "$second" connected
rm "$tmp/go"
expect_exit $io 0

is "attempts" "$(ask max-reconnect-attempts)" "max_reconnect_attempts  -1"
ask max-reconnect-attempts 7
is "attempts" "$(ask max-reconnect-attempts)" "max_reconnect_attempts  7"
is "exports" "$(ask --json show | grep -o '"exports":\[[^]]*\]')" '"exports":[]'

expect_failure 1 "expected addresses, no names" "$rtrsctl" --socket "$socket" path add localhost:1
expect_failure 1 "there is no path 'x'" "$rtrsctl" --socket "$socket" path remove x
expect_failure 1 "policy 'best': expected" "$rtrsctl" --socket "$socket" policy best
expect_failure 1 "expected a number from -1 to 9999" "$rtrsctl" --socket "$socket" max-reconnect-attempts -- -2
expect_failure 1 "nbdkit-rtrs-plugin has no command 'export kick'" "$rtrsctl" --socket "$socket" export kick disk

# It answers while the server stands still, and without a server.
kill -STOP "$server_pid"
ask show >"$tmp/show"
kill -CONT "$server_pid"
stop_server "$server_pid"
wait_until "the loss" state_is "$second" back-off
is "cause" "$(json "p['$second']['cause'] != ''")" True

# Where to.
stop_process "$nbdkit_pid"
[ ! -e "$socket" ] || fail "$socket was left behind"
start_server "disk=$tmp/disk"
start_nbdkit "127.0.0.1:$server_port" export=disk control="$tmp/here.sock"
is "path" "$("$rtrsctl" --socket "$tmp/here.sock" list | grep -c path)" 1
expect_nbdkit_failure "control=$tmp/here.sock: process [0-9]+ listens there" "127.0.0.1:$server_port" \
	export=disk mode=ro control="$tmp/here.sock"
expect_nbdkit_failure "control=here: expected an absolute path, or none" "127.0.0.1:$server_port" control=here
start_nbdkit "127.0.0.1:$server_port" mode=ro control=none
must_fail ls "$RUNTIME_DIRECTORY/nbdkit-$nbdkit_pid.sock"
