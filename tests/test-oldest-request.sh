#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Health is judged by requests, too: all paths are up, and the storage holds a FLUSH and a READ.
# Both ends know how long ago each was asked for, across a path that is lost, and say so: check,
# status, metrics.
# Programs that are busy are well.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_gateway; requires_root
requires_plain_build
requires nbdsh --version
requires curl --version

rtrsctl=$top_builddir/rtrsctl
truncate -s 1M "$tmp/image"
held_fs "$tmp/image"

# is STATUS REGEX OPTION...: what a check says.
is() {
	local want=$1 regex=$2 status=0
	shift 2
	"$rtrsctl" "$@" check >"$tmp/check" 2>&1 || status=$?
	[ $status -eq "$want" ] && grep -q -E -- "$regex" "$tmp/check"
}
must_be() { is "$@" || fail "the check says: $(cat "$tmp/check")"; }

# oldest KIND OPTION...: the age of the oldest request of an export or session, in ms.
oldest() {
	local kind=$1
	shift
	"$rtrsctl" "$@" --json show |
		with_json 'print(a[sys.argv[1]][0]["oldest_ns"] // 1000000)' "$kind"
}

# metric URL NAME: whole seconds.
metric() { curl -s "$1" | sed -n "s/^$2\({.*}\)\? \([0-9]*\).*/\2/p"; }
url() { sed -n 's,.*metrics: \(http://.*\)$,\1,p' "$1"; }

start_server --metrics 0 "disk=$tmp/mnt/disk"
start_gateway -v "server=127.0.0.1:$server_port" export=disk name=patient metrics=0 \
	io-timeout=forever
patient=$gateway_pid patient_uri=$uri patient_log=$gateway_log
start_gateway "server=127.0.0.1:$server_port" export=disk name=hasty mode=ro io-timeout=10
hasty=$gateway_pid
wait_line "$server_log" ' metrics: '
wait_line "$patient_log" ' metrics: '

# client URI NAME COMMAND: work until told, then a COMMAND that the storage is to hold.
client() {
	local name=$2 command=$3
	nbdsh_run "$1" <<-END
	import os, time
	while not os.path.exists("$tmp/$name.go"):
	    $command
	    open("$tmp/$name.busy", "w").close()
	open("$tmp/$name.idle", "w").close()
	while not os.path.exists("$tmp/hold"):
	    time.sleep(0.02)
	$command
	END
}
client "$patient_uri" patient "h.flush()" &
patient_client=$!
client "$uri" hasty "h.pread(4096, 0)" &
hasty_client=$!
wait_until "a busy client" test -e "$tmp/patient.busy"
wait_until "the other one" test -e "$tmp/hasty.busy"
for ((i = 0; i < 10; i++)); do
	must_be 0 '^RTRS OK '
done
touch "$tmp/patient.go" "$tmp/hasty.go"
wait_until "an idle client" test -e "$tmp/patient.idle"
wait_until "the other one" test -e "$tmp/hasty.idle"
[ "$(oldest exports --server)" = 0 ] || fail "an idle server has a request"
[ "$(oldest exports --name=patient)" = 0 ] || fail "an idle gateway has a request"

cat >"$tmp/holder.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
assert s.recv(1) == b"H"
print("held", flush=True)
assert s.recv(1) == b"W"
print("waits", flush=True)
sys.stdin.read()
END
mkfifo "$tmp/release"
/usr/bin/python3 "$tmp/holder.py" "$tmp/held.sock" <"$tmp/release" >"$tmp/holder" &
holder=$!
exec 9>"$tmp/release"
wait_line "$tmp/holder" held
touch "$tmp/hold"
wait_line "$tmp/holder" waits

# The path of one goes, and comes back: the age goes on.
ages() { [ "$(oldest exports --name=patient)" -gt 500 ]; }
wait_until "an age" ages
before=$(oldest exports --name=patient)
"$rtrsctl" --name=patient path disconnect "127.0.0.1:$server_port"
state_is() { "$rtrsctl" --name=patient --json show | grep -q -F "\"state\":\"$1\",\"up_ns\""; }
wait_until "the loss" state_is down
without=$(oldest sessions --name=patient)
[ "$without" -ge "$before" ] || fail "an age of $without ms without a path, and $before before"
path_is_closed() { "$rtrsctl" --name=patient --json show | grep -q '"state":"closed"'; }
wait_until "the end of the path" path_is_closed
"$rtrsctl" --name=patient path reconnect "127.0.0.1:$server_port"
wait_until "the path" state_is up
after=$(oldest exports --name=patient)
[ "$after" -ge "$without" ] || fail "an age of $after ms after a loss, and $without before"

waits=' has a request that waits [0-9]+ s'
wait_until "a warning" is 1 "^RTRS WARNING - .*: rtrs-nbd patient: disk$waits " --name=patient
wait_until "an alarm" is 2 "^RTRS CRITICAL - .*: rtrs-nbd hasty: disk$waits " --name=hasty
wait_until "the server's warning" is 1 \
	'^RTRS WARNING - .*: rtrs-server[^:]*: disk waits [0-9]+ s for its storage ' --server
for whose in --server --name=patient --name=hasty; do
	status=0
	"$rtrsctl" $whose status >"$tmp/status" || status=$?
	[ $status -eq 3 ] || fail "status $status of $whose"
	grep -E '^disk .* waits [0-9]+ s ' "$tmp/status"
done
at_least() { [ "$(metric "$(url "$1")" "$2")" -ge 5 ] || fail "$2 is less than 5"; }
at_least "$server_log" rtrs_server_export_oldest_request_seconds
at_least "$server_log" rtrs_server_oldest_request_seconds
at_least "$patient_log" rtrs_client_export_oldest_request_seconds
at_least "$patient_log" rtrs_client_session_oldest_request_seconds

# The storage goes on.
exec 9>&-
expect_exit $patient_client 0
expect_exit $hasty_client 0
wait "$holder"
wait_until "all to be well" is 0 '^RTRS OK '
[ "$(oldest sessions --server)" = 0 ] || fail "a request is left"
[ "$(metric "$(url "$patient_log")" rtrs_client_session_oldest_request_seconds)" -eq 0 ]
stop_process "$hasty"
stop_process "$patient"
stop_server "$server_pid"
