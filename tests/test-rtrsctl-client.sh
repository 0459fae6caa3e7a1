#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl and the plugin: paths come and go while requests run and none fails, and it answers while
# all paths are down.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl
case $NBD_FRONT in
nbdkit) program=nbdkit-rtrs-plugin ;;
*) program=$NBD_FRONT ;;
esac

# json EXPRESSION: of the session s, and of its paths p by name
json() {
	ask --json stats | with_json "
[s] = a['sessions']
p = {x['name']: x for x in s['paths']}
print($1)"
}

ask() {
	"$rtrsctl" --socket "$socket" "$@"
}

# status_is STATUS REGEX: the exit status of status, and the only row that it prints.
status_is() {
	local status=0
	ask status >"$tmp/status" || status=$?
	is "exit status of status" $status "$1"
	is "rows of status" "$(wc -l <"$tmp/status")" 2
	tail -n 1 "$tmp/status" | grep -E "$2" || fail "status has no row '$2'"
	status=0
	ask --json status >/dev/null || status=$?
	is "exit status of --json status" $status "$1"
}

state_is() {
	[ "$(json "p['$1']['state']")" = "$2" ]
}

truncate -s 8M "$tmp/disk"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)

start_nbdkit "$first" export=disk transport=tcp
socket=$RUNTIME_DIRECTORY/$NBD_FRONT-$nbdkit_pid.sock
# nbdkit says that it runs before it lets a plugin start its threads.
wait_until "the control socket" test -S "$socket"
is "mode of the socket" "$(stat -c %a "$socket")" 600
wait_until "the path" state_is "$first" connected
is "version of the protocol" "$(json "a['control_version']")" 1
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
expect_failure 1 "there is a path '$second' already" "$rtrsctl" --socket "$socket" path add \
	"$second"
for policy in round-robin min-latency min-inflight; do
	ask policy $policy
	is "policy" "$(json "s['policy']")" $policy
done
for round in 1 2 3; do
	ask path disconnect "$first"
	wait_until "its end" state_is "$first" closed
	expect_failure 1 "path '$first' is not connected" "$rtrsctl" --socket "$socket" path \
		disconnect "$first"
	ask path reconnect "$first"
	wait_until "the first path" state_is "$first" connected
	ask path reconnect "$second"
	wait_until "the second path" state_is "$second" connected
	is "round" "$(json "p['$second']['reconnects'] > 0")" True
	ask path remove "$second"
	is "what is listed" "$(json "list(p)")" "['$first']"
	expect_failure 1 "cannot remove '$first', the last path" "$rtrsctl" --socket "$socket" \
		path remove "$first"
	ask path add "$second"
	wait_until "the second path" state_is "$second" connected
done
# With both cut requests wait, and control does not.
sess="$NBD_FRONT-[^ ]+"
ask path disconnect "$first"
wait_until "the end of the first" state_is "$first" closed
status_is 3 "^disk +8 MiB +rw +degraded 1/2 +$sess +$second +tcp +[0-9]+ "
ask path disconnect "$second"
wait_until "the end of both" state_is "$second" closed
is "session" "$(json "s['state']")" down
status_is 3 "^disk +8 MiB +rw +down since [0-9]+ (s|min) +$sess +$first \\+1 +tcp +0 "
is "time" "$(json "s['down_ns'] > 0 and s['up_ns'] == 0")" True
kill -0 $io
ask path reconnect "$second"
wait_until "the second path" state_is "$second" connected
is "time" "$(json "s['down_ns'] == 0 and 'up_ns' in s")" True
is_up_for_some_time() {
	[ "$(json "s['up_ns'] > 0")" = True ]
}
wait_until "the time since" is_up_for_some_time
ask path reconnect "$first"
wait_until "the first path" state_is "$first" connected
status_is 0 "^disk +8 MiB +rw +up +$sess +$first \\+1 +tcp +[1-9]"
rm "$tmp/go"
expect_exit $io 0
nobody_has_it() {
	[ "$(json "s['devices']")" = "[]" ]
}
wait_until "the end of its user" nobody_has_it
status_is 0 "^- +- +- +up +$sess +$first \\+1 +tcp +- "

is "attempts" "$(ask max-reconnect-attempts)" "max_reconnect_attempts  -1"
ask max-reconnect-attempts 7
is "attempts" "$(ask max-reconnect-attempts)" "max_reconnect_attempts  7"
ask max-reconnect-attempts -1
is "attempts" "$(ask max-reconnect-attempts)" "max_reconnect_attempts  -1"
is "exports" "$(ask --json show | grep -o '"exports":\[[^]]*\]')" '"exports":[]'

# A name that the log tells is one that each command takes; it is the same after a reconnect.  Paths
# that differ in their source only differ in the log, too.
two=127.0.0.2@$first
three=127.0.0.3@$first
for name in "$two" "$three"; do
	ask path add "$name"
	wait_until "path $name" state_is "$name" connected
	ask path reconnect "$name"
	wait_line "$nbdkit_log" "path $name: connected again"
	ask path disconnect "$(sed -n 's/.*path \([^ ]*\): connected again.*/\1/p' "$nbdkit_log" |
		tail -n 1)"
	wait_until "its end" state_is "$name" closed
	must_fail ask path disconnect "$name"
	ask path reconnect "tcp://$name"
	wait_until "path $name" state_is "$name" connected
done
is "names of paths" "$(json "set(p) == {'$first', '$second', '$two', '$three'}")" True
expect_failure 1 "there is a path '$two' already" "$rtrsctl" --socket "$socket" path add \
	"tcp://$two"
ask path remove "$two"
ask path remove "$three"
must_fail grep -E "path [^ ]*:[0-9]+@" "$nbdkit_log"

# A name is the client's to resolve: it stays the name of the path.
for name in localhost:1 localhost tcp://localhost:2 localhost@localhost:3 127.0.0.2@127.0.0.9:4 \
	"[::1]:5" \
	"[fe80::1%nosuch0]:6" nosuch.invalid:7; do
	ask path add "$name"
	is "what $name is" "$(json "'${name#tcp://}' in p and len(p) == 3")" True
	ask path remove "$name"
	removed_is_closed() {
		ask path add 127.0.0.1:6 && ask path remove 127.0.0.1:6
	}
	wait_until "room for the next" removed_is_closed
done
expect_failure 1 "path 'a:b:c': an IPv6 address is written in brackets" \
	"$rtrsctl" --socket "$socket" path add a:b:c
expect_failure 1 "there is no path 'x'" "$rtrsctl" --socket "$socket" path remove x
expect_failure 1 "policy 'best': expected" "$rtrsctl" --socket "$socket" policy best
expect_failure 1 "max-reconnect-attempts .-2.: expected a number from 0 to 9999, or -1 for no end" \
	"$rtrsctl" --socket "$socket" max-reconnect-attempts -2
expect_failure 1 "$program has no command 'export kick'" \
	"$rtrsctl" --socket "$socket" export kick disk

# It answers while the server stands still, and without a server.
stop_all_threads "$server_pid"
ask show >"$tmp/show"
kill -CONT "$server_pid"
stop_server "$server_pid"
wait_until "the loss" state_is "$second" back-off
wait_until "the loss" state_is "$first" back-off
status_is 3 "^- +- +- +down since [0-9]+ (s|min) +$sess +$first \\+1 +tcp +- "
is "cause" "$(json "p['$second']['cause'] != ''")" True

# Counters, each of what is done here.  A device is forgotten when its last client has left.
stop_process "$nbdkit_pid"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
start_nbdkit "$first" path="$second" export=disk transport=tcp control="$tmp/count.sock"
nbdsh_run "$uri" <<END
import json, os, signal, subprocess, time

def ask(*args):
    out = subprocess.run(["$rtrsctl", "--json", "--socket", "$tmp/count.sock", *args],
                         stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)

def stats():
    a = ask("stats")
    return a["exports"][0], {p["name"]: p for p in a["sessions"][0]["paths"]}

def path(name):
    return stats()[1][name]

def wait_until(true):
    while not true():
        time.sleep(0.05)

def cut(name):
    ask("path", "disconnect", name)
    wait_until(lambda: path(name)["state"] == "closed")

def connect(name):
    if path(name)["state"] == "closed":
        ask("path", "reconnect", name)
    wait_until(lambda: path(name)["state"] == "connected")

def freeze():
    subprocess.check_call(["bash", "$top_srcdir/tests/stop-threads.sh", "$TIMEOUT_S",
                           "$server_pid"])

def some_reads(n):
    return [h.aio_pread(nbd.Buffer(4096), i * 4096) for i in range(n)]

def finish(cookies):
    for c in cookies:
        while not h.aio_command_completed(c):
            h.poll(-1)

connect("$second")
cut("$second")
ask("stats", "reset")

# Operations, as their user sees them: one that is not aligned is a read and a write of the server.
for i in range(20):
    h.pread(4096, i * 4096)
for i in range(10):
    h.pwrite(bytes(8192), i * 8192)
h.flush()
h.zero(65536, 0)
h.trim(65536, 65536)
h.pwrite(bytes(10), 100)
os.truncate("$tmp/disk", 4 << 20)
try:
    h.pread(4096, 6 << 20)
    assert False
except nbd.Error:
    pass
os.truncate("$tmp/disk", 8 << 20)
ex, paths = stats()
counted = {op: (s["count"], s["bytes"], s["errors"]) for op, s in ex["stats"].items()}
assert counted == {"read": (21, 81920, 1), "write": (11, 81930, 0), "flush": (1, 0, 0),
                   "write_zeroes": (1, 65536, 0), "discard": (1, 65536, 0)}, counted
for s in ex["stats"].values():
    assert sum(s["log2_ns"]) == s["count"] and 0 < s["p50_ns"] <= s["p99_ns"] <= s["p999_ns"], s
assert ex["queueing"]["wait"]["count"] == 0, ex
p = paths["$first"]
assert (p["reads"], p["read_bytes"], p["writes"], p["write_bytes"]) == (22, 86528, 11, 82432), p
assert p["keys_mapped"] == p["local_invalidates"] == 22 and p["failovers"] == 0, p
# The threads of the plugin wait; rtrs-nbd has one loop.
has_waiters = "$NBD_FRONT" == "nbdkit"
assert (p["wakeups"] > 0) == has_waiters, p
assert not any(paths["$second"][n] for n in ("reads", "writes", "keys_mapped", "wakeups")), paths

# Many that wait for answers at the same time hand on who polls.
if has_waiters:
    wait_until(lambda: (finish(some_reads(32)), path("$first")["poll_handovers"])[1])

# What one path loses another one takes over: when nothing is answered.
connect("$second")
ask("stats", "reset")
freeze()
cookies = some_reads(8)
wait_until(lambda: sum(p["inflight"] for p in stats()[1].values()) == 8)
lost = path("$first")["inflight"]
assert lost > 0
cut("$first")
wait_until(lambda: path("$second")["inflight"] == 8)
os.kill($server_pid, signal.SIGCONT)
finish(cookies)
ex, paths = stats()
assert paths["$second"]["failovers"] == lost and paths["$first"]["failovers"] == 0, (lost, paths)
assert ex["stats"]["read"]["count"] == 8 and ex["stats"]["read"]["errors"] == 0, ex
assert paths["$first"]["reconnects"] == 0, paths

# Without a path they wait, and nothing of that is a failover.
def wait_for_a_path():
    freeze()
    cookies = some_reads(1)
    wait_until(lambda: path("$second")["inflight"] == 1)
    cut("$second")
    os.kill($server_pid, signal.SIGCONT)
    connect("$second")
    finish(cookies)
    return stats()[0]["queueing"]["wait"]

wait_until(lambda: wait_for_a_path()["count"])
wait = stats()[0]["queueing"]["wait"]
assert sum(wait["log2_ns"]) == wait["count"] and wait["p50_ns"] > 0, wait
p = path("$second")
assert p["failovers"] == lost and p["reconnects"] > 0 and p["reconnects_failed"] == 0, p

ask("stats", "reset")
ex, paths = stats()
numbers = [n for n in paths["$second"] if n in """reads read_bytes writes write_bytes failovers reconnects
           reconnects_failed poll_handovers wakeups keys_mapped keys_bound remote_invalidates
           local_invalidates missing_invalidates""".split()]
assert len(numbers) == 14, paths
assert not any(p[n] for p in paths.values() for n in numbers), paths
assert not any(s["count"] or s["bytes"] or s["errors"] or s["log2_ns"] for s in ex["stats"].values()), ex
assert ex["queueing"]["wait"]["count"] == 0, ex
END
socket=$tmp/count.sock
kill_process "$server_pid"
failed_again() {
	[ "$(json "p['$second']['reconnects_failed'] > 0")" = True ]
}
wait_until "an attempt that fails" failed_again
stop_process "$nbdkit_pid"

# Keys where they are windows: each is bound, and taken away by one of both.
start_server "disk=$tmp/disk"
start_nbdkit "127.0.0.1:$server_port" export=disk transport=tcp registration=window \
	control="$tmp/window.sock"
socket=$tmp/window.sock
nbdsh_run "$uri" <<'END'
for i in range(10):
    h.pread(4096, i * 4096)
END
name=127.0.0.1:$server_port
is "keys" "$(json "p['$name']['keys_mapped'] == p['$name']['keys_bound'] > 10")" True
is "keys taken away" "$(json \
	"p['$name']['remote_invalidates'] + p['$name']['local_invalidates'] == \
	p['$name']['keys_bound']")" True
is "keys not taken away" "$(json "p['$name']['missing_invalidates']")" 0
ask path disconnect "$name"
wait_until "its end" state_is "$name" closed
is "keys of what is gone" "$(json "p['$name']['keys_bound'] > 10")" True
ask path reconnect "$name"
wait_until "the path" state_is "$name" connected
is "keys of what is gone" "$(json "p['$name']['keys_bound'] > 10")" True
stop_process "$nbdkit_pid"
stop_server "$server_pid"

# Where to.
stop_process "$nbdkit_pid"
[ ! -e "$socket" ] || fail "$socket was left behind"
start_server "disk=$tmp/disk"
start_nbdkit "127.0.0.1:$server_port" export=disk control="$tmp/here.sock"
wait_until "the control socket" test -S "$tmp/here.sock"
is "path" "$("$rtrsctl" --socket "$tmp/here.sock" list | grep -c path)" 1
expect_nbdkit_failure "control=$tmp/here.sock: process [0-9]+ listens there" \
	"127.0.0.1:$server_port" \
	export=disk mode=ro control="$tmp/here.sock"
expect_nbdkit_failure "control=here: expected an absolute path, or none" "127.0.0.1:$server_port" \
	control=here
start_nbdkit "127.0.0.1:$server_port" mode=ro control=none
must_fail ls "$RUNTIME_DIRECTORY/$NBD_FRONT-$nbdkit_pid.sock"
