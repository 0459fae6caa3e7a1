#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Rights to exports by the name of a key, over TLS: what each client lists, opens and writes; who is
# connected, by which key; another's name with one's own key; keys that come and go with a reload,
# and the sessions of those that go; a file of keys with a mistake.
. ./tests/functions.sh
requires_server; requires_gateway
requires nbdinfo --version
requires nbdsh --version
requires curl --version

bench=$top_builddir/rtrs-bench
umask 077
key() {
	"$top_builddir/rtrs-psk" "$1" >"$tmp/$1.psk"
}
for name in gw1 gw2 backup gw3; do
	key $name
done
# A second key of gw2, with a label.
"$top_builddir/rtrs-psk" gw2/new >"$tmp/gw2-new.psk"
keys=$tmp/server.psk
# keys FILE...: the file of the server
keys() {
	(cd "$tmp" && cat "$@") >"$keys"
}
keys gw1.psk gw2.psk backup.psk
truncate -s 1M "$tmp/one" "$tmp/two" "$tmp/all"
start_server --tls=require --tls-psk="$keys" --control "$tmp/control" --state-dir "$tmp/state" \
	--metrics "unix:$tmp/metrics" \
	"one=$tmp/one,allow=psk:gw1" "two=$tmp/two,allow=psk:gw1,psk:gw2,read-only=psk:backup" \
	"all=$tmp/all"
port=$server_port log=$server_log
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")

# from NAME [OPTION...]: a gateway with the key of NAME
from() {
	start_gateway "server=127.0.0.1:$port" tls=require tls-psk="$tmp/$1.psk" "${@:2}"
}
listed() {
	timeout $((3 * TIMEOUT_S)) nbdinfo --list --json "nbd+unix:///?socket=$sock" |
		with_json 'print(*sorted(e["export-name"] for e in a["exports"]))'
}
opens() {
	timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///$1?socket=$sock" >"$tmp/size" 2>"$tmp/why"
}
# sees LIST: what the client lists it opens, and nothing else
sees() {
	local name
	[ "$(listed)" = "$1" ] || fail "lists $(listed), not $1"
	for name in one two all; do
		case " $1 " in
		*" $name "*) opens $name ;;
		*) must_fail opens $name ;;
		esac
	done
}
# no_io REGEX NAME EXPORT OPTION...: the client is refused so
no_io() {
	expect_failure 1 "$1" "$bench" --number-ios=10 --tls=require --tls-psk="$tmp/$2.psk" \
		"127.0.0.1:$port" "${@:3}"
}
# io NAME EXPORT OPTION...
io() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=10 --tls=require --tls-psk="$tmp/$1.psk" \
		"127.0.0.1:$port" "${@:2}"
}

# ---- what each may do ----

from gw1 sessname=first
sees 'all one two'
stop_process "$gateway_pid"
from gw2 sessname=second
sees 'all two'
gw2_pid=$gateway_pid gw2_sock=$sock
from backup sessname=third
sees 'all two'
nbdsh_run "nbd+unix:///two?socket=$sock" <<'END'
assert h.is_read_only()
assert h.pread(512, 0) == bytes(512)
try:
    h.pwrite(b"x" * 512, 0)
    raise SystemExit("written")
except nbd.Error:
    pass
END
stop_process "$gateway_pid"
io gw2 two --rw=randwrite
no_io 'ead-only' backup two --rw=randwrite
wait_line "$log" 'open of two as rw refused: .*; its read-only contains 127\.0\.0\.1, psk:backup'

# What is hidden has the answer of what is not there, word for word.
told() {
	{ io gw2 "$1" 2>&1 || true; } | sed "s/$1/NAME/g"
}
[ -n "$(told one)" ]
[ "$(told one)" = "$(told eno)" ]
wait_line "$log" \
	'open of one as [a-z]* refused: .*; its allow does not contain 127\.0\.0\.1, psk:gw2'

# ---- another's name ----

sed 's/^gw2:/gw1:/' "$tmp/gw2.psk" >"$tmp/fake.psk"
no_io 'TLS: the peer refused the key of gw1' fake one
# The name of a session is one of each client.  rtrsctl wants to know whose is meant.
from backup sessname=second
sees 'all two'
names="expected 'psk:gw2/second' or 'psk:backup/second'"
expect_failure 1 "several clients have a session 'second': $names" \
	"${ctl[@]}" session disconnect second
expect_failure 1 "several clients have a session 'second': $names" \
	"${ctl[@]}" export kick two second
must_fail grep -E 'second/.*: path down' "$log"
expect_failure 1 "2 sessions have a path 'second/.*': expected 'psk:(gw2|backup)/second/.*' or '" \
	"${ctl[@]}" path disconnect "second/127.0.0.1@127.0.0.1:$port"
"${ctl[@]}" status >"$tmp/status"
grep -E ' psk:gw2/second ' "$tmp/status"
grep -E ' psk:backup/second ' "$tmp/status"
"${ctl[@]}" path disconnect "psk:backup/second/127.0.0.1@127.0.0.1:$port"
wait_line "$log" 'second/.*: path down: '
[ "$(grep -c -E 'second/.*: path down' "$log")" -eq 1 ]
other_sock=$sock nbdsh_run "nbd+unix:///two?socket=$gw2_sock" <<END
import os, shlex, subprocess
other = nbd.NBD()
other.connect_uri("nbd+unix:///two?socket=" + os.environ["other_sock"])
kick = shlex.split("""${ctl[*]@Q} export kick two nobody""")
said = subprocess.run(kick, stderr=subprocess.PIPE, text=True)
assert said.returncode == 1 and "one of psk:gw2/second, psk:backup/second" in said.stderr, said
END
# So does the log.
wait_line "$log" 'second/.*: path up, .* session psk:backup/second$'
wait_line "$log" ' psk:backup/second: device [0-9]+ opened: two, ro$'
wait_line "$log" ' psk:backup/second: device [0-9]+ closed: two$'
comes_back() {
	[ "$(grep -c -E 'second/.*: path up' "$log")" -eq 3 ]
}
wait_until "the path" comes_back
"${ctl[@]}" session disconnect psk:backup/second
downs() {
	[ "$(grep -c -E 'second/.*: path down' "$log")" -eq 2 ]
}
wait_until "the end of the path" downs
stop_process "$gateway_pid"
# A second session of one client under one name is refused, with a warning on both ends.
no_io "the server refused session 'second': another client of the same identity has it .*sessname" \
	gw2 all --sessname=second
wait_line "$log" 'warning: .*path not set up: session name second of psk:gw2 is in use by second/'

# ---- who is connected ----

"${ctl[@]}" clients >"$tmp/clients"
cat "$tmp/clients"
grep -E '^second +127\.0\.0\.1 +psk:gw2 +tcp +TLS1\.3 AES-128-GCM +[0-9]+ s +up' "$tmp/clients"
touch -d '3 days ago' "$keys"
"${ctl[@]}" --json clients | with_json '
c, = [c for c in a["clients"] if c["session"] == "second"]
assert c["identity"] == "psk:gw2" and c["ciphers"] == ["TLS1.3 AES-128-GCM"], c
assert 0 <= c["key_age_ns"] < 86400e9, c'

# ---- what was refused ----

refused() {
	curl --silent --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics" \
		http://localhost/metrics |
		sed -n "s/^rtrs_server_refused_total{reason=\"$1\"} //p"
}
[ "$(refused rights)" -ge 3 ]
[ "$(refused read_only)" -ge 2 ]
[ "$(refused identity)" -ge 1 ]
[ "$(refused missing)" -ge 1 ]
[ "$(refused limit)" -eq 0 ]
# Each failed handshake counts, and a flood of them has few lines.
tls=$(refused tls)
[ "$tls" -ge 1 ]
[ "$(refused connect)" -eq 0 ]
/usr/bin/python3 - "$port" <<'END'
import socket, sys
for i in range(100):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        s.sendall(bytes([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]))
        while s.recv(100):
            pass
END
[ "$(refused tls)" -eq $((tls + 100)) ]
lines=$(grep -c 'closed during the handshake: TLS' "$log")
[ "$lines" -ge 2 ] && [ "$lines" -le 41 ] || fail "$lines lines for 100 failed handshakes"

# ---- rules that change ----

says() {
	local want=$1 got
	shift
	got=$("${ctl[@]}" "$@")
	[ "$got" = "$want" ] || fail "said '$got', not '$want'"
}
says 'one: read-only none -> psk:gw2' export set one read-only=psk:gw2
io gw2 one --rw=randread
no_io 'ead-only' gw2 one --rw=randwrite
says 'one: read-only psk:gw2 -> none' export set one read-only=none
expect_failure 1 "allow 'psk:': behind psk: expected a name" "${ctl[@]}" export set one allow=psk:
expect_failure 1 "expected the name of an identity" "${ctl[@]}" export set one allow=psk:gw1/a

# ---- old opens, new rules ----

# holder NAME EXPORT CALL OPTION...: another client does CALL until EXPORT is taken away
holder() {
	from "$1" sessname="old-$1" "${@:4}"
	nbdsh_run "nbd+unix:///$2?socket=$sock" <<END &
open("$tmp/$1.open", "w").close()
try:
    while True:
        $3
except nbd.Error:
    open("$tmp/$1.gone", "w").close()
END
	wait_until "$1 has $2 open" test -e "$tmp/$1.open"
}
reader() {
	holder "$1" "$2" 'h.pread(4096, 0)' mode=ro
}
writer() {
	holder "$1" "$2" 'h.pwrite(bytes(4096), 0)' mode=rw
}
# has WHOM EXPORT ALLOWED: "rtrsctl clients" tells so
has() {
	"${ctl[@]}" --json clients | with_json '
got = [e["allowed"] for c in a["clients"] if c["session"] == sys.argv[1]
       for e in c["exports"] if e["export"] == sys.argv[2]]
assert got == [sys.argv[3] == "yes"], got' "$@"
}
reader gw1 two
gw1_pid=$gateway_pid gw1_sock=$sock
reader gw2 two
gw2_old_pid=$gateway_pid
has old-gw1 two yes
says 'two: allow psk:gw1, psk:gw2 -> psk:gw2' export set two allow=psk:gw2
has old-gw1 two no
has old-gw2 two yes
"${ctl[@]}" clients >"$tmp/clients"
grep -E '^old-gw1 .* two \(ro, not allowed\) ' "$tmp/clients"
grep -E '^old-gw2 .* two \(ro\) ' "$tmp/clients"
outside=': old-gw1 has two open, which its rules no longer allow '
# is_outside STATUS: "rtrsctl check" ends so
is_outside() {
	local status=0
	"${ctl[@]}" check >"$tmp/check" || status=$?
	[ $status -eq "$1" ] || fail "status $status: $(cat "$tmp/check")"
}
is_outside 1
grep -F "$outside" "$tmp/check"
expect_failure 1 "no client 'psk:gw3' has export 'two' open: expected .* of one of .*old-gw[12]" \
	"${ctl[@]}" export kick two psk:gw3
expect_failure 1 "no session has export 'one' open" "${ctl[@]}" export kick one psk:gw1
"${ctl[@]}" export kick two psk:gw1
wait_line "$log" 'old-gw1: device [0-9]+ of two is taken away: kicked by rtrsctl'
"${ctl[@]}" check >"$tmp/check" || true
must_fail grep -F "$outside" "$tmp/check"
wait_until "gw1 has lost it" test -e "$tmp/gw1.gone"
sock=$gw1_sock
must_fail opens two
no_io 'no such export' gw1 two
has old-gw2 two yes
[ ! -e "$tmp/gw2.gone" ]
stop_process "$gw1_pid"
# By the name of the session: who still may open the export opens it again by itself.
"${ctl[@]}" export kick two old-gw2
wait_until "gw2 has lost it" test -e "$tmp/gw2.gone"
io gw2 two
stop_process "$gw2_old_pid"
# With --force a change of the rules does so for those that the rules would refuse.
rm "$tmp"/gw[12].gone "$tmp"/gw[12].open
says 'two: allow psk:gw2 -> psk:gw1, psk:gw2' export set two allow=psk:gw1,psk:gw2
reader gw1 two
gw1_pid=$gateway_pid
reader gw2 two
gw2_old_pid=$gateway_pid
says 'two: allow psk:gw1, psk:gw2 -> psk:gw2' --force export set two allow=psk:gw2
wait_line "$log" \
	'old-gw1: device [0-9]+ of two is taken away: its rules no longer allow the client to have it open'
wait_until "gw1 has lost it" test -e "$tmp/gw1.gone"
has old-gw2 two yes
[ ! -e "$tmp/gw2.gone" ]
stop_process "$gw1_pid"
stop_process "$gw2_old_pid"
says 'two: allow psk:gw2 -> psk:gw1, psk:gw2' export set two allow=psk:gw1,psk:gw2
# A writer who may only read from now on is one of those.
rm "$tmp/gw1.gone" "$tmp/gw1.open"
writer gw1 two
has old-gw1 two yes
says 'two: read-only psk:backup -> psk:gw1' --force export set two read-only=psk:gw1
wait_until "gw1 has lost it" test -e "$tmp/gw1.gone"
no_io 'ead-only' gw1 two --rw=randwrite
io gw1 two --rw=randread
stop_process "$gateway_pid"
says 'two: read-only psk:gw1 -> psk:backup' export set two read-only=psk:backup

# ---- keys that come and go ----

no_io 'TLS: the peer refused the key of gw3' gw3 all
keys gw1.psk gw2-new.psk gw2.psk gw3.psk
unnamed="warning: export 'two': read-only psk:backup matches no client: no file of keys has this name"
says "-key backup
+key gw2/new
+key gw3
$unnamed" reload
io gw3 all
io gw2-new two
no_io 'TLS: the peer refused the key of backup' backup all
# Of two keys of one identity the old one holds until it is taken out.
sock=$gw2_sock
opens two
[ "$("${ctl[@]}" --json clients | grep -c '"identity": *"psk:gw2"')" = 1 ]
keys gw1.psk gw2-new.psk gw3.psk
"${ctl[@]}" reload >"$tmp/reload"
grep -x -- '-key gw2 (1 path ended)' "$tmp/reload"
wait_line "$log" 'second/.*: path down: the key of psk:gw2 was removed'
wait_line "$log" "TLS: no key has the name 'gw2'"
must_fail grep -q 'psk:gw2' <("${ctl[@]}" clients)
stop_process "$gw2_pid"
from gw2-new sessname=second
sees 'all two'
# The same name with another key: who has the old one is out.
key gw1.new
sed 's/^gw1.new:/gw1:/' "$tmp/gw1.new.psk" >"$tmp/gw1-new.psk"
keys gw1-new.psk gw2-new.psk gw3.psk
says "-key gw1
+key gw1
$unnamed" reload
no_io 'TLS: the peer refused the key of gw1' gw1 one
io gw1-new one

# ---- a unix socket: the user or the name ----

stop_process "$gateway_pid"
start_server --listen "unix:$tmp/a.sock" --tls=on --tls-psk="$keys" --control none \
	"both=mem:1M,allow=uid:$(($(id -u) + 1)),psk:gw1" "user=mem:1M,allow=uid:$(id -u),psk:gw3" \
	"reader=mem:1M,allow=uid:$(id -u),read-only=psk:gw2"
# as NAME|- EXPORT OPTION...: over the socket, with the key or in plain
as() {
	local tls=(--tls=require --tls-psk="$tmp/$1.psk")
	[ "$1" != - ] || tls=()
	timeout "$TIMEOUT_S" "$bench" --number-ios=10 "${tls[@]}" "unix:$tmp/a.sock" "${@:2}"
}
as gw1-new both
must_fail as - both
must_fail as gw3 both
as - user --rw=randwrite
as gw2-new user --rw=randwrite
as - reader --rw=randwrite
as gw2-new reader --rw=randread
must_fail as gw2-new reader --rw=randwrite
stop_process "$server_pid"

# ---- mistakes ----

chmod 644 "$keys"
expect_failure 1 "--tls-psk=$keys: expected mode 0600, not 0644" "${ctl[@]}" reload
io gw1-new one
"${ctl[@]}" check >"$tmp/check" && fail "check says $(cat "$tmp/check")"
grep -F "tls-psk=$keys: expected mode 0600, not 0644" "$tmp/check"
expect_failure 2 "--tls-psk=$keys: expected mode 0600, not 0644" \
	"$RTRS_SERVER" --check --tls-psk="$keys" "one=$tmp/one"
chmod 600 "$keys"
"${ctl[@]}" check
echo 'x:00' >>"$keys"
expect_failure 1 'line 4: expected a key of' "${ctl[@]}" reload
expect_failure 2 'line 4: expected a key of' "$RTRS_SERVER" --check --tls-psk="$keys" "one=$tmp/one"
io gw3 all
