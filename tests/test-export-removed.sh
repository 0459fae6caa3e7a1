#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An export that is removed while a client has it open: status, check, clients, show and metrics
# have it until the client closes it, its limits bind, and each command that takes it away names it.
# Added again with the same store, by a reload too, it has its users of before.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
requires curl --version

truncate -s 4M "$tmp/a" "$tmp/b"
ln -s a "$tmp/link"
conf=$tmp/conf
# serve_from FILE...: the file of the configuration has the export "disk" of FILE, or none.
serve_from() {
	printf '%s\n' '[server]' 'name = srv' "listen = unix:$tmp/sock" >"$conf"
	[ $# -eq 0 ] || printf '%s\n' '[export "disk"]' "path = $1" >>"$conf"
}
serve_from "$tmp/a"
start_server --control "$tmp/control" --state-dir "$tmp/state" --config "$conf" \
	--metrics "unix:$tmp/metrics" "other=mem:1M"
rtrsctl() { timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control" "$@"; }

# sample SAMPLE: its value in the metrics.
sample() {
	curl -s --unix-socket "$tmp/metrics" http://localhost/metrics >"$tmp/text"
	sed -n "s/^$(printf '%s' "$1" | sed 's/[][\.*^$/]/\\&/g') //p" "$tmp/text"
}
# json EXPRESSION: of an answer to stats, a; exports called disk: the listed one, and removed ones.
json() {
	rtrsctl --json stats | with_json '
disks = [e for e in a["exports"] if e["name"] == "disk"]
listed = [e for e in disks if e["storage"] != "removed"]
removed = [e for e in disks if e["storage"] == "removed"]
devs = [d for s in a["sessions"] for d in s["devices"]]
print(eval(sys.argv[1]))' "$1"
}
# says STATUS LINE COMMAND...: rtrsctl of the server prints LINE and ends with STATUS.
says() { says_at "$tmp/control" "$@"; }
gateway_says() { says_at "$tmp/gateway" "$@"; }
says_at() {
	local status=0 socket=$1 want=$2 line=$3
	shift 3
	timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$socket" "$@" >"$tmp/out" 2>&1 ||
		status=$?
	[ $status -eq "$want" ] || fail "rtrsctl $* ended with $status: $(cat "$tmp/out")"
	grep -q -E -- "$line" "$tmp/out" || fail "rtrsctl $*: $(cat "$tmp/out")"
}

# A client that does as it is told: N writes, or "many", a write of so many requests that some have
# to wait for a limit, however slow the machine is.
mkfifo "$tmp/go" "$tmp/said"
# It has gone if the test has come to its end.
end_client() {
	kill "$1" 2>/dev/null || return 0
	wait "$1" || true
}
start_client() {
	start_nbdkit "server=unix:$tmp/sock" export=disk sessname="$1" control="$tmp/gateway"
	timeout $((4 * TIMEOUT_S)) nbdsh -u "$uri" -c - <<-END &
		while True:
		    with open("$tmp/go") as f:
		        word = f.read().strip()
		    if word == "end":
		        break
		    try:
		        if word == "many":
		            h.pwrite(bytes(2 << 20), 1 << 20)
		        for i in range(int(word) if word != "many" else 0):
		            h.pwrite(bytes([i]) * 512, 512 * i)
		        said = "wrote"
		    except nbd.Error:
		        said = "failed"
		    with open("$tmp/said", "w") as f:
		        f.write(said + "\n")
	END
	nbdsh=$!
	cleanup_fn end_client "$nbdsh"
}
# writes N|many WORD: the client writes; its word is wrote or failed.
writes() {
	local word
	echo "$1" >"$tmp/go"
	read -r -t $((2 * TIMEOUT_S)) word <"$tmp/said"
	[ "$word" = "$2" ] || fail "the client: $word, expected $2"
}
leave() {
	echo end >"$tmp/go"
	wait "$nbdsh"
	stop_process "$nbdkit_pid"
}
start_client gw
writes 3 wrote

# ---- removed, and still open ----
rtrsctl export set disk iops=8 burst=1s
says 0 '^-disk .in use by gw: removed when closed; --force kicks.$' export remove disk
before=$(json 'removed[0]["throttled_requests"]')
writes many wrote
count=$(json 'removed[0]["stats"]["write"]["count"]')
writes 9 wrote
is "writes" "$(json 'removed[0]["stats"]["write"]["count"]')" $((count + 9))
[ "$(json 'removed[0]["throttled_requests"]')" -gt "$before" ] || fail "its limit binds nobody"
id=$(json 'removed[0]["id"]')
is "clients" "$(json '(len(disks), removed[0]["clients"], removed[0]["removed"])')" "(1, 1, True)"
is "the device" "$(json '(devs[0]["export_id"], devs[0]["removed"])')" "($id, True)"
says 3 '^disk +4 MiB +rw +removed +gw ' status
says 1 'WARNING.*: rtrs-server srv: disk is removed, and 1 client still has it open ' check
says 0 '^gw .* disk \(rw, removed\) ' clients
is "exports" "$(sample rtrs_server_exports)" 1
is "removed exports" "$(sample rtrs_server_exports_removed)" 1
is "its users" "$(sample "rtrs_server_export_users{export=\"disk\",removed=\"$id\"}")" 1
is "its state" "$(sample \
	"rtrs_server_export_state{export=\"disk\",removed=\"$id\",state=\"removed\"}")" 1
is "its bytes" "$(sample \
	"rtrs_server_export_io_bytes_total{export=\"disk\",removed=\"$id\",operation=\"write\"}")" \
	$((512 * (3 + 9) + (2 << 20)))
says 1 "export 'disk' is removed already, and in use by gw: removed when closed; --force kicks" \
	export remove disk
says 1 "no client 'nobody' has export 'disk' open: expected .* of one of gw" export kick disk nobody
rtrsctl stats reset
is "writes since the reset" "$(json 'removed[0]["stats"]["write"]["count"]')" 0

# ---- another store of the same name has users of its own ----
says 0 "^\\+disk=$tmp/b$" export add "disk=$tmp/b"
writes 1 wrote
is "writes" "$(json '[e["stats"]["write"]["count"] for e in listed + removed]')" "[0, 1]"
is "the device" "$(json '(devs[0]["export_id"], devs[0]["removed"])')" "($id, True)"
is "its limit" "$(json '"limit_iops" in listed[0]')" False
says 3 '^disk +4 MiB +rw +- +- ' status
says 3 '^disk +4 MiB +rw +removed +gw ' status
says 0 '^-disk$' --force export remove disk
writes 1 wrote

# ---- a second name of the store is another export ----
rtrsctl export add "twin=$tmp/a,readonly"
rtrsctl export set twin iops=5
is "its limit" "$(json 'removed[0]["limit_iops"]')" 8
says 0 '^-twin$' export remove twin

# ---- the same store under another path: its users, counters and limits are one's ----
says 0 "^\\+disk=$tmp/link$" export add "disk=$tmp/link"
is "what people see" "$(json '(len(listed), len(removed), listed[0]["id"])')" "(1, 0, $id)"
is "its limit" "$(json '"limit_iops" in listed[0]')" False
is "the device" "$(json '(devs[0]["export_id"], devs[0]["removed"])')" "($id, False)"
says 0 '^disk +4 MiB +rw +up +gw ' status
says 0 '^RTRS OK' check
must_fail grep -q 'are the same storage' "$server_log"
count=$(json 'listed[0]["stats"]["write"]["count"]')
before=$(json 'listed[0]["throttled_requests"]')
rtrsctl export set disk iops=8 burst=1s
writes 9 wrote
is "writes" "$(json 'listed[0]["stats"]["write"]["count"]')" $((count + 9))
writes many wrote
[ "$(json 'listed[0]["throttled_requests"]')" -gt "$before" ] || fail "another limit binds nobody"
is "removed exports" "$(sample rtrs_server_exports_removed)" 0
rtrsctl export set disk iops=none

# ---- as it was: by a reload, and a reload by force finds nobody to kick ----
says 0 "^-disk .in use by gw: .*$" export remove disk
says 0 "^\\+disk=$tmp/a$" export add "disk=$tmp/a"
rtrsctl --force reload >"$tmp/out"
[ ! -s "$tmp/out" ] || fail "the reload has changed something: $(cat "$tmp/out")"
writes 1 wrote
serve_from
says 0 '^-disk .in use by gw: ' reload
serve_from "$tmp/a"
says 0 "^\\+disk=$tmp/a$" reload
writes 1 wrote
is "what people see" "$(json '(len(listed), len(removed), listed[0]["id"])')" "(1, 0, $id)"
# A session that comes back takes up what it has open.
rtrsctl session disconnect gw
writes 2 wrote

# ---- by force ----
serve_from
says 0 '^-disk .in use by gw: ' reload
says 0 '^-disk \(taken from gw\)$' --force reload
writes 1 failed
leave
is "removed exports" "$(sample rtrs_server_exports_removed)" 0
says 0 '^RTRS OK' check
wait_until "the end of the lock" flock -n "$tmp/a" true
for take in "--force export remove disk" "export kick disk gw2"; do
	rtrsctl export add "disk=$tmp/a"
	start_client gw2
	writes 1 wrote
	rtrsctl export remove disk
	# shellcheck disable=SC2086 # words
	rtrsctl $take
	writes 1 failed
	gateway_says 2 '^RTRS CRITICAL .*: gw2 kicked ' check
	gateway_says 3 '^disk .* kicked +gw2 ' status
	gateway_says 2 '^bad .* session: gw2 kicked \(.*until NBD clients open it again\)$' doctor
	grep -q 'disk: the server has taken the export away: requests fail until ' "$nbdkit_log" ||
		fail "the log of the gateway: $(cat "$nbdkit_log")"
	leave
done
# A client that connects again has it, and so has a session that comes back.
rtrsctl export add "disk=$tmp/a"
start_client gw3
writes 1 wrote
rtrsctl export kick disk
writes 1 failed
gateway_says 2 '^RTRS CRITICAL .*: gw3 kicked ' check
"$top_builddir/rtrsctl" --socket "$tmp/control" session disconnect gw3
writes 1 wrote
gateway_says 0 '^RTRS OK ' check
leave
