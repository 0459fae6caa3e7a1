#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One bad export keeps no other one down.  A start serves what it can, and tries the rest again; a
# reload keeps the predecessor of an export whose storage cannot be opened; clients wait for the
# storage.  A mistake in a file still changes nothing, and --strict is for who wants all or nothing.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin
requires nbdsh --version
requires flock --version

rtrsctl=$top_builddir/rtrsctl
conf=$tmp/conf
truncate -s 1M "$tmp/good" "$tmp/locked" "$tmp/old"

# configure PATH: of the export that changes.
configure() {
	cat >"$conf" <<END
[export "good"]
path = $tmp/good
[export "away"]
path = $tmp/away
allow = 127.0.0.0/8
iops = 12345
[export "locked"]
path = $tmp/locked
[export "changes"]
path = $1
END
}

# server_is STATUS REGEX: what a check of the server says.
server_is() {
	local status=0
	"$rtrsctl" --server check >"$tmp/check" 2>&1 || status=$?
	[ $status -eq "$1" ] && grep -q -E -- "$2" "$tmp/check"
}

# export_has NAME MEMBER: of the answer to "show".
export_has() {
	"$rtrsctl" --server --json show | with_json '
ex = [e for e in a["exports"] if e["name"] == sys.argv[1]][0]
print(ex[sys.argv[2]])' "$@"
}

# A lock costs the start one time-out, and keeps nothing down.
flock --no-fork "$tmp/locked" sleep 1000 &
holder=$!
cleanup_fn kill_process $holder
locked() { ! flock --nonblock "$tmp/locked" true; }
wait_until "the lock" locked
configure "$tmp/old"
start_server --listen tcp://127.0.0.1:0 --lock-timeout 1 --config "$conf"
away="export 'away': '$tmp/away' cannot be opened: No such file or directory"
away+=': create it, or correct the path'
wait_line "$server_log" "away: $away; retrying every 5 s"
wait_line "$server_log" "locked: export 'locked': '$tmp/locked' is locked by process .*; retrying"
server_is 2 "CRITICAL - .*: away failed: $away; .*: locked failed: export 'locked'" ||
	fail "the check says: $(cat "$tmp/check")"
"$rtrsctl" --server list | grep away
("$rtrsctl" --server status || true) | grep -E '^away +- +- +failed '
must_fail "$rtrsctl" --server export resize away

# The good one is served.  A gateway starts, and a client waits for the storage of the other one, as
# for a server that is away.  The export comes with the rights and limits of its section.
expect_nbdkit_failure "export 'away' of .*: the server cannot open its storage now" \
	"server=127.0.0.1:$server_port" export=away
start_nbdkit "server=127.0.0.1:$server_port" export=away connect-timeout=forever
wait_line "$nbdkit_log" 'its storage now \("rtrsctl doctor" there says why\); starting without'
# The gateway says so, as long as it is so, before any NBD client has come and after one has gone.
gateway_is() {
	local status=0
	"$rtrsctl" --gateway check >"$tmp/check" || status=$?
	[ $status -eq "$1" ] && grep -E "$2" "$tmp/check"
}
refused='CRITICAL - .*: away refused: the server cannot open its storage now \("rtrsctl doctor" there'
wait_until "the refusal" gateway_is 2 "$refused"
("$rtrsctl" --gateway status || true) | grep -E '^away +- +- +refused '
nbdsh_run "$uri" <<'END' &
h.pwrite(b"x" * 4096, 0)
h.flush()
END
client=$!
wait_line "$nbdkit_log" 'away: the server cannot open its storage now: waiting for it'
truncate -s 1M "$tmp/away"
expect_exit $client 0
[ "$(export_has away limit_iops)" = 12345 ] || fail "the export has no limits"
[ "$(head -c 4096 "$tmp/away" | tr -d x | wc -c)" = 0 ] || fail "nothing was written"
kill_process $holder
wait_until "all" server_is 0 'RTRS OK'
wait_until "the end of the refusal" gateway_is 0 'RTRS OK'
stop_process "$nbdkit_pid"

# late_server: without the export good1, and then with it.
late_server() {
	local other_pid=$server_pid other_port=$server_port
	start_server --listen "unix:$tmp/late.sock" --control "$tmp/late.ctl" good=mem:1M
	late_pid=$server_pid server_pid=$other_pid server_port=$other_port
	wait_until "a refusal" gateway_is 2 \
		'CRITICAL - .*: good1 refused: the server has no such export for'
	"$rtrsctl" --socket "$tmp/late.ctl" export add good1=mem:2M
	wait_until "the export" gateway_is 0 'RTRS OK'
}

# A gateway starts before its server, with a name that the server does not have.
start_nbdkit "server=unix:$tmp/late.sock" export=good1 connect-timeout=forever io-timeout=1
wait_line "$nbdkit_log" 'late.sock.*; starting without'
late_server
# The server comes back without it, and no NBD client has come meanwhile.
stop_process "$late_pid"
late_server
stop_process "$nbdkit_pid"
stop_process "$late_pid"

# A mistake in a file changes nothing.
echo 'nonsense' >>"$conf"
must_fail "$rtrsctl" --server reload
server_is 0 'RTRS OK'

# A reload whose storage is missing keeps the predecessor, also for a client that has it open.
start_nbdkit "server=127.0.0.1:$server_port" export=changes
holds_open "$uri" "h.pwrite(b'o' * 4096, 0); h.flush()"
configure "$tmp/new"
"$rtrsctl" --server reload >"$tmp/reload"
grep "changes stale: export 'changes': '$tmp/new' cannot be opened: No such file" "$tmp/reload"
must_fail grep -e '-changes' "$tmp/reload"
server_is 2 "CRITICAL - .*: changes stale: export 'changes': '$tmp/new' cannot be opened" ||
	fail "the check says: $(cat "$tmp/check")"
[ "$(export_has changes path)" = "$tmp/old" ] || fail "the predecessor has gone"
let_go
[ "$(head -c 4096 "$tmp/old" | tr -d o | wc -c)" = 0 ] || fail "the predecessor was not written to"
truncate -s 2M "$tmp/new"
wait_until "the new storage" server_is 0 'RTRS OK'
[ "$(export_has changes path)" = "$tmp/new" ] || fail "the new storage is not there"
stop_process "$nbdkit_pid"

# An export that has gone from the files is tried no more.
rm "$tmp/new"
configure "$tmp/none"
"$rtrsctl" --server reload | grep 'changes stale:'
configure "$tmp/old"
"$rtrsctl" --server reload
[ "$(export_has changes path)" = "$tmp/old" ] || fail "the former storage is not back"
server_is 0 'RTRS OK' || fail "the check says: $(cat "$tmp/check")"
stop_process "$server_pid"

# All or nothing.
rm "$tmp/away"
expect_failure 1 "$away" "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 "good=$tmp/good" \
	"away=$tmp/away"
