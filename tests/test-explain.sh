#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client is refused: what the client reads, and what "rtrsctl explain EXPORT CLIENT" says at the
# server.  The client is told neither an unknown name from a wrong key, nor what it may not open
# from what does not exist; the server says which rule, key, mode or user it is.  What explain says
# is compared with what a client gets.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plugin
requires nbdsh --version

bench=$top_builddir/rtrs-bench
umask 077
for name in alice bob carol; do
	"$top_builddir/rtrs-psk" $name >"$tmp/$name.psk"
done
"$top_builddir/rtrs-psk" alice >"$tmp/wrong.psk"
"$top_builddir/rtrs-psk" alice/new >"$tmp/new.psk"
keys=$tmp/server.psk
(cd "$tmp" && cat alice.psk bob.psk new.psk) >"$keys"
truncate -s 1M "$tmp/disk" "$tmp/mine" "$tmp/lists" "$tmp/fixed"
start_server --listen tcp://127.0.0.1:0 --listen "unix:$tmp/u.sock,auth=none" --auth=require \
	--auth-psk="$keys" \
	--allow=127.0.0.0/8 --allow="uid:$(id -u)" --control "$tmp/control" --max-sessions=3 \
	"disk=$tmp/disk" "mine=$tmp/mine,allow=psk:alice" \
	"lists=$tmp/lists,allow=psk:alice,10.0.0.0/8,read-only=psk:bob" \
		"fixed=$tmp/fixed,readonly" \
	"away=$tmp/away"
server=127.0.0.1:$server_port
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")

# explains STATUS EXPORT CLIENT: the answer is in $tmp/said
explains() {
	local status=0
	"${ctl[@]}" explain "$2" "$3" >"$tmp/said" || status=$?
	cat "$tmp/said"
	[ $status -eq "$1" ] || fail "explain $2 $3: status $status, not $1"
}
# says VERDICT CHECK REGEX: a line of the answer
says() {
	grep -E "^$1 +$2 +.*$3" "$tmp/said" || fail "no line '$1 $2 ... $3'"
}
ends() {
	[ "$(tail -n 1 "$tmp/said")" = "$1" ] || fail "ends '$(tail -n 1 "$tmp/said")', not '$1'"
}
# last REGEX: the last refusal of the client
last() {
	grep -E "^last refused [0-9.]+ (ms|s) ago, $1" "$tmp/said" || fail "no last refusal '$1'"
}
# opens KEY EXPORT ro|rw: a client with the key does
opens() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=1 --auth-psk="$tmp/$1.psk" \
		--rw="$([ "$3" = ro ] && echo randread || echo randwrite)" "$server" "$2"
}
# told TEXT KEY|- EXPORT [OPTION...]: such a client is refused so
told() {
	local key=(--auth-psk="$tmp/$2.psk")
	[ "$2" != - ] || key=()
	expect_failure 1 "$1" "$bench" --number-ios=1 "${key[@]}" "${@:4}" "$server" "$3"
}

# ---- what each may do, and gets ----

# may KEY CLIENT EXPORT MODE|-: explain says so, and so it is
may() {
	if [ "$4" = - ]; then
		explains 1 "$3" "$2"
		ends "$2 may not open $3: $5"
		must_fail opens "$1" "$3" ro
	else
		explains 0 "$3" "$2"
		ends "$2 may open $3 ($4)"
		opens "$1" "$3" "$4"
		[ "$4" = rw ] || must_fail opens "$1" "$3" rw
	fi
}
may alice psk:alice@127.0.0.1 disk rw
says passes rights 'the export has no rules: every client may open it'
may alice psk:alice@127.0.0.1 mine rw
says passes rights 'allow = psk:alice names psk:alice'
may new psk:alice/new@127.0.0.1 mine rw
says passes key "--auth-psk=$keys has alice/new"
may alice psk:alice@127.0.0.1 lists rw
may alice psk:alice@127.0.0.1 fixed ro
says passes mode 'the export is read-only for all'
may bob psk:bob@127.0.0.1 disk rw
may bob psk:bob@127.0.0.1 mine - rights
says refuses rights 'allow = psk:alice; read-only = none: no rule names psk:bob or 127\.0\.0\.1 .*no such export'
may bob psk:bob@127.0.0.1 lists ro
says passes rights 'read-only = psk:bob names psk:bob'
may bob psk:bob@127.0.0.1 nothing - export
says refuses export "there is no export 'nothing'"
explains 1 away psk:bob@127.0.0.1
ends 'psk:bob@127.0.0.1 may not open away: export'
says refuses export 'the storage of away is failed: .*No such file or directory'
may carol psk:carol@127.0.0.1 disk - 'key, listener'
says refuses key "--auth-psk=$keys: no key of psk:carol was read there, or it was removed"
says refuses listener "tcp://$server .auth=require, tls=off: its key is refused there"
explains 1 disk psk:alice/old@127.0.0.1
says refuses key 'no key of psk:alice/old'
# Nobody with a certificate, and nobody without a key.
explains 1 disk cert:alice@127.0.0.1
says refuses listener 'no certificate of a client is verified there'
explains 1 disk 127.0.0.1
says passes address '--allow=127\.0\.0\.0/8 names 127\.0\.0\.1'
says refuses listener \
	'a client without a key is refused.; of a client with a key ask for psk:NAME@127\.0\.0\.1'
explains 1 disk 192.0.2.7
says refuses address 'no --allow names 192\.0\.2\.7'
explains 1 disk ::1
says refuses address 'no --allow names \[::1\]'
# A user of the unix socket, which asks nobody.
explains 0 disk "uid:$(id -u)"
says passes address "--allow=uid:$(id -u) names uid:$(id -u)"
says passes listener "unix:$tmp/u.sock .auth=none"
timeout "$TIMEOUT_S" "$bench" --number-ios=1 --rw=randwrite "unix:$tmp/u.sock" disk
explains 1 disk "uid:$(($(id -u) + 1))"
says refuses address "no --allow names uid:$(($(id -u) + 1))"
explains 1 mine "uid:$(id -u)"
says refuses rights 'no rule names a client without a name or uid:'
# Without the address, what an address decides is open.
explains 1 lists psk:carol
ends 'psk:carol may not open lists: key, listener'
says depends rights 'allow = psk:alice, 10\.0\.0\.0/8; read-only = psk:bob: the address decides'
explains 1 disk psk:bob
ends 'whether psk:bob may open disk depends: address'
says depends address 'ask for psk:bob@ADDRESS'
explains 1 lists psk:gw@10.1.2.3
says passes rights 'allow = 10\.0\.0\.0/8 names 10\.1\.2\.3'

# ---- what the client is told ----

told 'connection 0 was refused: the server requires authentication .auth-psk=FILE' - disk
# One answer for both.
answer='the server has refused the key, .*the same for an unknown name and for a wrong key: "rtrsctl explain"'
told "authentication as carol: $answer" carol disk
told "authentication as alice: $answer" wrong disk
explains 0 disk psk:alice@127.0.0.1
says passes key 'has alice, alice/new: if this client reads that its key is refused, its file has another key'
# What the server remembers tells them apart.
last 'from 127\.0\.0\.1 as psk:alice: wrong key'
explains 1 disk psk:carol
last 'from 127\.0\.0\.1 as psk:carol: no key has this name'
explains 0 disk psk:bob@127.0.0.1
last 'from 127\.0\.0\.1 as a client without a name: it does not authenticate'
told "export 'mine' of server=.*: the server has no such export" bob mine
told "export 'none' of server=.*: the server has no such export" bob none
explains 1 mine psk:bob@127.0.0.1
last 'from 127\.0\.0\.1 as psk:bob: open of mine as ro refused: .*; its allow does not contain 127\.0\.0\.1, psk:bob'
told 'read-only on the server for this client, which its read-only= names' bob lists --rw=randwrite
told 'read-only on the server, for all clients' alice fixed --rw=randwrite
expect_nbdkit_failure 'the server requires authentication' "server=$server" export=disk control=none

# ---- in use, by whom ----

start_gateway "server=$server" auth-psk="$tmp/alice.psk" sessname=holder control=none
holder_pid=$gateway_pid holder_uri=$uri
nbdsh_run "nbd+unix:///disk?socket=$sock" <<END &
h.pwrite(b"x" * 512, 0)
open("$tmp/open", "w").close()
import os, time
while not os.path.exists("$tmp/enough"):
    time.sleep(0.05)
END
user=$!
wait_until "the writer" test -e "$tmp/open"
explains 1 disk psk:bob@127.0.0.1
ends 'psk:bob@127.0.0.1 may not open disk: use'
says refuses use 'session holder of psk:alice, from 127\.0\.0\.1, has disk open as rw .mode=ro or mode=migration would'
says passes limit '[0-9] sessions of 3, '
told 'open for writing by another session, which "rtrsctl clients" at the server names' bob disk \
	--rw=randwrite
opens bob disk ro
# The client itself, by each of its names.
for client in holder psk:alice/holder psk:alice 127.0.0.1; do
	explains 0 disk $client
	says passes use 'session holder of this client has it open as rw: another session cannot open it as rw'
	says passes limit 'the client is connected, by 1 session'
	ends "$client may open disk (rw)"
done
# Two clients at one address.
# sessions N: so many are there
sessions() {
	[ "$("${ctl[@]}" list | grep -c ' session ')" -eq "$1" ]
}
start_gateway "server=$server" auth-psk="$tmp/bob.psk" sessname=holder control=none mode=ro
wait_until "its session, and no former one" sessions 2
expect_failure 1 "several clients have a session 'holder': expected 'psk:(alice|bob)/holder' or" \
	"${ctl[@]}" explain disk holder
expect_failure 1 \
	"client '127.0.0.1': psk:(alice|bob) and psk:(alice|bob) come from there: expected one" \
	"${ctl[@]}" explain disk 127.0.0.1
explains 1 mine psk:bob/holder
says refuses rights 'no rule names psk:bob'
# No room for a third client.
timeout "$TIMEOUT_S" "$bench" --runtime=60 --auth-psk="$tmp/new.psk" "$server" fixed >"$tmp/third" \
	2>&1 &
third=$!
wait_until "a third session" sessions 3
explains 1 fixed uid:0
says refuses limit '3 sessions of --max-sessions=3 are there'
told 'connection 0 was refused: the server has as many sessions as it allows .its --max-sessions' \
	bob fixed
kill "$third"
wait "$third" || true
"${ctl[@]}" --json explain disk psk:bob@127.0.0.1 >"$tmp/json" && fail "status 0 with --json"
/usr/bin/python3 - "$tmp/json" <<'END'
import json, sys
a = json.load(open(sys.argv[1]))
assert a["export"] == "disk" and a["client"] == "psk:bob@127.0.0.1" and a["identity"] == "psk:bob", a
assert a["may_open"] is False and "mode" not in a and a["sessions"] == 1 and a["addresses"] == ["127.0.0.1"], a
checks = [c["check"] for c in a["checks"]]
assert checks == ["address", "key", "listener", "limit", "export", "rights", "mode", "use"], checks
assert [c["check"] for c in a["checks"] if c["verdict"] != "passes"] == ["use"], a
last = a["last_refusal"]
assert last["from"] == "127.0.0.1" and "too many sessions" in last["reason"] and last["ago_ns"] >= 0, a
END
stop_process "$gateway_pid"
touch "$tmp/enough"
wait "$user"
stop_process "$holder_pid"

# ---- a key that is taken out ----

cp "$tmp/bob.psk" "$keys"
"${ctl[@]}" reload
told "authentication as alice: $answer" alice disk
explains 1 disk psk:alice@127.0.0.1
says refuses key 'no key of psk:alice was read there, or it was removed'


# ---- keys of TLS, and a server that asks nobody ----

# tls KEY [OPTION...]: a client with the key in TLS, and no other proof
tls() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=1 --tls=require --tls-psk="$tmp/$1.psk" \
		"${@:2}" "$server" disk
}
stop_process "$server_pid"
cp "$tmp/bob.psk" "$tmp/tls.psk"
(cd "$tmp" && cat alice.psk bob.psk) >"$keys"
start_server --tls=require --tls-psk="$tmp/tls.psk" --auth=require --auth-psk="$keys" --control \
	"$tmp/control" \
	"disk=$tmp/disk"
server=127.0.0.1:$server_port
explains 0 disk psk:bob@127.0.0.1
says passes key "--auth-psk=$keys has bob; --tls-psk=$tmp/tls.psk has bob"
says passes listener 'auth=require, tls=require'
tls bob
tls bob --auth-psk="$tmp/bob.psk"
# One of two files is not enough.
explains 1 disk psk:alice@127.0.0.1
ends 'psk:alice@127.0.0.1 may not open disk: listener'
says refuses listener 'TLS requires a key, and this client has none here'
must_fail tls alice --auth-psk="$tmp/alice.psk"
explains 1 disk 127.0.0.1
says refuses listener 'a client without a key is refused'
last 'from 127\.0\.0\.1 as a client without a name: TLS'
stop_process "$server_pid"
start_server --auth=none --auth-psk="$keys" --control "$tmp/control" "disk=$tmp/disk"
server=127.0.0.1:$server_port
explains 1 disk psk:bob@127.0.0.1
says refuses listener 'no client proves a key there: the client has no name, ask for its address'
explains 0 disk 127.0.0.1
told "the server does not authenticate, which auth=require needs" bob disk
timeout "$TIMEOUT_S" "$bench" --number-ios=1 "$server" disk
# A session without a name of its own has its address.
start_gateway "server=$server" sessname=nameless control=none
must_fail timeout "$TIMEOUT_S" "$bench" --number-ios=1 "$server" none
explains 1 none nameless
last 'from 127\.0\.0\.1 as a client without a name: open of none'
stop_process "$gateway_pid"
stop_process "$server_pid"
cp "$tmp/bob.psk" "$keys"
start_server --listen tcp://127.0.0.1:0 --auth=require --auth-psk="$keys" --control "$tmp/control" \
	"disk=$tmp/disk"
server=127.0.0.1:$server_port

# ---- a gateway that runs, and is refused ----

# shows REGEX: the gateway has this cause
shows() {
	timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/gate" show |
		grep -E " cause +$1"
}
start_gateway "server=$server" export=disk auth-psk="$tmp/bob.psk" control="$tmp/gate"
cp "$tmp/alice.psk" "$keys"
"${ctl[@]}" reload
wait_until "the reason" shows \
	'authentication as bob: the server has refused the key, .*"rtrsctl explain"'
stop_process "$gateway_pid"
# ---- mistakes ----

expect_failure 1 "client 'nobody': expected an address, uid:NUMBER, psk:NAME, cert:NAME" \
	"${ctl[@]}" explain disk nobody
expect_failure 1 "client 'psk:': behind psk: expected a name" "${ctl[@]}" explain disk psk:
expect_failure 1 "client 'uid:root': expected an address, uid:NUMBER" "${ctl[@]}" explain disk \
	uid:root
expect_failure 2 "explain: which client" "${ctl[@]}" explain disk
expect_failure 2 "explain: which export" "${ctl[@]}" explain
stop_process "$server_pid"

# A server that asks nobody, and is started again as one that demands a key.
start_server --listen tcp://127.0.0.1:0 --control none "disk=$tmp/disk"
at=tcp://127.0.0.1:$server_port
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/gate"
stop_process "$server_pid"
start_server --listen "$at" --auth=require --auth-psk="$keys" --control none "disk=$tmp/disk"
wait_until "the reason" shows \
	'connection 0 was refused: the server requires authentication .auth-psk=FILE'
stop_process "$gateway_pid"
stop_process "$server_pid"
