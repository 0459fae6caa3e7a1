#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "allow" of an export, with clients from several addresses of the loopback network: who is in the
# list opens the export, to others it does not exist; a path from elsewhere does not join a session
# that has the export open; reload and "export set" hold for what opens next; save, show and --check
# tell the list, and the priority.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version
requires nbdsh --version

truncate -s 1M "$tmp/disk"
conf=$tmp/conf
mkdir "$conf.d"
# write_conf LINE...: the lines stand in [export "one"]
write_conf() {
	printf '%s\n' '[server]' 'listen = 127.0.0.1:0' "listen = unix:$tmp/unix" \
		'allow = 127.0.0.0/8' \
		'[export "all"]' 'path = mem:1M' 'allow = all' \
		'[export "net"]' 'path = mem:1M' 'allow = 127.0.0.4/30' 'allow = ::1' \
		'[export "user"]' 'path = mem:1M' "allow = uid:$(id -u)" \
		'[export "other-user"]' 'path = mem:1M' "allow = uid:$(($(id -u) + 1))" \
		'[export "one"]' "path = $tmp/disk" "$@" >"$conf"
}
write_conf 'allow = 127.0.0.2' 'priority = best-effort:6'
"$RTRS_SERVER" --config "$conf" --check >"$tmp/check"
grep -q '^one: allow all -> 127.0.0.2, priority none -> best-effort:6$' "$tmp/check"
grep -q '^net: allow all -> 127.0.0.4/30, ::1$' "$tmp/check"
start_server --control "$tmp/control" --state-dir "$tmp/state" --config "$conf"
port=$server_port
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")

# from ADDR KEY=VALUE...: a client with a path from ADDR
from() {
	start_nbdkit "path=$1@127.0.0.1:$port" "${@:2}"
}
listed() {
	timeout $((3 * TIMEOUT_S)) nbdinfo --list --json "nbd+unix:///?socket=$sock" \
		>"$tmp/list.json"
	with_json 'print(*sorted(e["export-name"] for e in a["exports"]))' <"$tmp/list.json"
}
# opens NAME: of the client that was started last
opens() {
	timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///$1?socket=$sock" >"$tmp/size" 2>"$tmp/why"
}
# sees WANT: what the client lists, it opens, and nothing else
sees() {
	local name
	[ "$(listed)" = "$1" ] || fail "lists $(listed), not $1"
	for name in all net user other-user one; do
		case " $1 " in
		*" $name "*) opens $name ;;
		*) must_fail opens $name ;;
		esac
	done
	stop_process "$nbdkit_pid"
}
from 127.0.0.2 mode=ro
sees 'all one'
from 127.0.0.5 mode=ro
sees 'all net'
from 127.0.0.8 mode=ro
sees all
# Rules for addresses let in nobody who comes by a unix socket, whatever the mode of the socket; a
# rule for users is for these users.  --allow, for the whole server, has addresses alone, and leaves
# the socket to its mode.
start_nbdkit "server=unix:$tmp/unix" mode=ro
sees 'all user'
wait_line "$server_log" 'open of net as ro refused: .*; its allow does not contain unix:'

# What is hidden and what is not there are one answer; the log of the server knows better.
why() {
	env "${nbd_front[@]}" -f -U "$tmp/failure.sock" "path=127.0.0.8@127.0.0.1:$port" \
		"export=$1" 2>&1 | sed "s/'$1'/NAME/; s/^.*NAME/NAME/"
}
preload=$(nbdkit_preload)
[ -z "$preload" ] || nbd_front=(env "LD_PRELOAD=$preload" "${nbd_front[@]}")
why one >"$tmp/hidden" || true
why eno >"$tmp/missing" || true
grep -q 'no such export for this client; it has all$' "$tmp/hidden"
diff "$tmp/hidden" "$tmp/missing"
wait_line "$server_log" \
	'open of one as rw refused: No such file.*its allow does not contain 127\.0\.0\.8$'
wait_line "$server_log" 'open of eno as rw refused: No such file or directory$'

# Each path of a session counts: a second path from elsewhere takes the export out of sight.
# read_until FILE: the client reads one until FILE is there
read_until() {
	nbdsh_run "nbd+unix:///one?socket=$sock" <<PY
import os
open("$1.open", "w").close()
while not os.path.exists("$1"):
    h.pread(4096, 0)
PY
}
paths_of() {
	"${ctl[@]}" --json list | with_json "
print(sum(len(s['paths']) for s in a['sessions'] if s['name'] == '$1'))"
}
has_paths() {
	[ "$(paths_of "$1")" = "$2" ]
}
for pair in '2 8' '8 2'; do
	from "127.0.0.${pair% *}" path="127.0.0.${pair#* }@127.0.0.1:$port" sessname=two mode=ro
	wait_until "both paths" has_paths two 2
	sees all
done

# A path from elsewhere does not join a session that has the export open.
from 127.0.0.2 mode=ro sessname=gw control="$tmp/clt"
clt=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/clt")
read_until "$tmp/end" &
reader=$!
wait_until "the export to be open" test -e "$tmp/end.open"
"${clt[@]}" path add "127.0.0.8@127.0.0.1:$port"
wait_line "$server_log" 'its session has one open, whose allow does not contain this address'
"${clt[@]}" path remove "127.0.0.8@127.0.0.1:$port"
"${clt[@]}" path add "127.0.0.2@127.0.0.1:$port" 2>/dev/null || true	# the one that is there
[ "$(paths_of gw)" = 1 ]

# Another list is for what opens next: the reader reads on, and NBD clients share what is open.
says() {
	local want=$1
	shift
	"${ctl[@]}" "$@" | diff -u <(printf '%s\n' "$want") -
}
write_conf 'allow = 127.0.0.7, 127.0.0.12/30'
says 'one: allow 127.0.0.2 -> 127.0.0.7, 127.0.0.12/30, priority best-effort:6 -> none' reload
opens one
kill -0 "$reader"
gw_sock=$sock gw_pid=$nbdkit_pid
from 127.0.0.2 mode=ro
sees all
from 127.0.0.13 mode=ro
sees 'all one'
: >"$tmp/end"
wait "$reader"
sock=$gw_sock
not_open() {
	must_fail opens one
	[ "$(listed)" = all ]
}
one_closed() {
	"${ctl[@]}" --json show |
		with_json 'assert not [e for e in a["exports"] if e["name"] == "one" and e["users"]]'
}
wait_until "the end of the reader's device" one_closed
not_open
stop_process "$gw_pid"

# export set, with a list of its own; a mistake changes nothing.  --force takes the export away.
says 'one: allow 127.0.0.7, 127.0.0.12/30 -> 127.0.0.2, 2001:db8::/32, priority none -> idle' \
	export set one allow=127.0.0.2,2001:db8::/32 priority=idle
expect_failure 1 "allow '127.0.0.300': expected ADDR or ADDR/BITS" \
	"${ctl[@]}" export set one allow=127.0.0.3,127.0.0.300
expect_failure 1 "priority 'idle:3': expected realtime or best-effort," \
	"${ctl[@]}" export set one priority=idle:3
expect_failure 1 "there is no option 'alow' .did you mean allow" "${ctl[@]}" export set one alow=::1
expect_failure 1 "there is no option 'readonly' .did you mean read-only" \
	"${ctl[@]}" export set one readonly=uid:0
"${ctl[@]}" show >"$tmp/show"
grep -q 'allow *127.0.0.2, 2001:db8::/32$' "$tmp/show"
grep -q 'priority *idle$' "$tmp/show"
json() {
	"${ctl[@]}" --json show | with_json "
e = {e['name']: e for e in a['exports']}
print($1)"
}
[ "$(json "e['one']['allow'], e['one']['priority'],
	'allow' in e['all'], 'priority' in e['all']")" = \
	"127.0.0.2, 2001:db8::/32 idle False False" ]

# An export that comes at run time has its rules from the start, and is saved with them.
says "+late=$tmp/disk,readonly
late: iops none -> 9, allow all -> 127.0.0.2, 2001:db8::/32, priority none -> realtime:4" \
	export add "late=$tmp/disk,allow=127.0.0.2,2001:db8::/32,readonly,iops=9,priority=realtime"
# What the run-time change of another export made is mentioned, and the added one is saved.
"${ctl[@]}" save | sed "s/$(basename "$conf"):[0-9]*/$(basename "$conf"):N/" |
	diff -u - <(printf '%s\n' "saved late=$tmp/disk,readonly" \
		"one is not saved: it differs from the one in $conf:N: change it there")
write_conf 'allow = 127.0.0.2' 'allow = 2001:db8::/32' 'priority = idle'
says "saved late=$tmp/disk,readonly" save
sed -n '/late/,$p' "$conf.d/rtrsctl-saved.conf" | diff -u - <(printf '%s\n' '[export "late"]' \
	"path = $tmp/disk" 'mode = ro' 'iops = 9' 'allow = 127.0.0.2' 'allow = 2001:db8::/32' \
	'priority = realtime:4')
[ -z "$("${ctl[@]}" reload)" ]
from 127.0.0.8 mode=ro
sees all

# With --force a change takes the export from who may not open it any more, and from nobody else.
from 127.0.0.2 mode=ro sessname=stays
read_until "$tmp/stop" &
stays=$!
from 127.0.0.3 mode=ro sessname=goes
write_conf 'allow = 127.0.0.2/31'
"${ctl[@]}" reload >/dev/null
read_until "$tmp/never" 2>"$tmp/goes.err" &
goes=$!
wait_until "the export to be open twice" test -e "$tmp/stop.open" -a -e "$tmp/never.open"
write_conf 'allow = 127.0.0.2'
says 'one: allow 127.0.0.2/31 -> 127.0.0.2' --force reload
must_fail wait "$goes"
: >"$tmp/stop"
wait "$stays"

# "unix" is each user of a unix socket, and nobody who comes over a network.
stop_process "$server_pid"
start_server --listen "unix:$tmp/unix" --listen tcp://127.0.0.1:0 --control none \
	local=mem:1M,allow=unix reader=mem:1M,allow=192.0.2.1,read-only=unix \
	net=mem:1M,allow=127.0.0.1
start_nbdkit "server=unix:$tmp/unix" mode=ro
[ "$(listed)" = 'local reader' ]
start_nbdkit "server=unix:$tmp/unix"
opens local
must_fail opens net
start_nbdkit "server=127.0.0.1:$server_port" mode=ro
[ "$(listed)" = net ]
