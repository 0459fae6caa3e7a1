#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl and a server: what it tells is so, counters count exactly, commands do what they say, and
# the exit status says whether they did.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl

# json EXPRESSION [COMMAND...]: a Python expression of the answer, a
json() {
	local expression=$1
	shift
	"$rtrsctl" --json "${@:-stats}" | with_json "
ex = a['exports'][0]
sessions = [s for s in a['sessions'] if s['devices']]
sess = sessions[0] if sessions else None
print($expression)"
}

# Nobody is there.
expect_failure 1 "no program with a control socket in $RUNTIME_DIRECTORY:" "$rtrsctl" list

truncate -s 8M "$tmp/disk" "$tmp/other"
# People who ask are in other directories.
relative=$(realpath --relative-to=. "$tmp/other")
start_server --queue-depth 64 "disk=$tmp/disk" "other=$relative,readonly"
socket=$RUNTIME_DIRECTORY/server-$server_pid.sock
is "mode of the socket" "$(stat -c %a "$socket")" 600
is list "$("$rtrsctl" list)" "rtrs-server disk
  pid  $server_pid
  export disk
  export other"
is "size" "$(json "ex['size']")" 8388608
is "modes" "$(json "[e['mode'] for e in a['exports']]")" "['rw', 'ro']"
is "paths" "$(json "[e['path'] for e in a['exports']]")" "['$tmp/disk', '$(pwd -P)/$relative']"
is "queue depth" "$(json "a['queue_depth']")" 64
is "version of the protocol" "$(json "a['control_version']")" 1
is "users" "$(json "ex['users']" show)" 0

# So that there is one program.
start_nbdkit "127.0.0.1:$server_port" export=disk control=none
uri1=$uri
nbdsh_run "$uri" <<END
import json, os, subprocess

def ask(*args):
    out = subprocess.run(["./rtrsctl", "--json", *args], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)

def stats():
    a = ask("stats")
    # Not what is still going.
    [(sess, path)] = [(s, p) for s in a["sessions"] for p in s["paths"] if p["state"] == "connected"]
    return a, sess, path, a["exports"][0], a["exports"][1]

a, sess, path, ex, other = stats()
assert path["state"] == "connected" and path["transport"] == "tcp", path
name = sess["name"] + "/127.0.0.1@" + path["dst_addr"]
assert path["name"] == name, path
assert sess["devices"][0]["export"] == "disk" and sess["devices"][0]["access_mode"] == "rw", sess
assert ex["users"] == 1 and ex["writers"] == 1 and other["users"] == 0

ask("stats", "reset")
for i in range(100):
    h.pread(4096, i * 4096)
for i in range(10):
    h.pwrite(bytes(8192), i * 8192)
h.flush()
h.zero(65536, 0)
h.trim(65536, 65536)
a, sess, path, ex, other = stats()
for stats_of in path["stats"], ex["stats"]:
    counted = {op: (s["count"], s["bytes"], s["errors"]) for op, s in stats_of.items()}
    assert counted == {"read": (100, 409600, 0), "write": (10, 81920, 0), "flush": (1, 0, 0),
                       "write_zeroes": (1, 65536, 0), "discard": (1, 65536, 0)}, counted
    for s in stats_of.values():
        assert sum(s["log2_ns"]) == s["count"], s
        assert 0 < s["p50_ns"] <= s["p99_ns"] <= s["p999_ns"], s
assert not any(s["count"] for s in other["stats"].values())
assert path["inflight"] == 0
ask("stats", "reset")
a, sess, path, ex, other = stats()
assert not any(s["count"] or s["log2_ns"] for s in path["stats"].values()), path
assert not any(s["count"] or s["log2_ns"] for s in ex["stats"].values()), ex

# Beyond the end of a file that was made shorter: an error, and no bytes.
os.truncate("$tmp/disk", 4 << 20)
try:
    h.pread(4096, 6 << 20)
    assert False
except nbd.Error:
    pass
counted = stats()[3]["stats"]["read"]
assert (counted["count"], counted["bytes"], counted["errors"]) == (1, 0, 1), counted
os.truncate("$tmp/disk", 8 << 20)

# Cut, and the client is back by itself; no request notices.  Its path is called as before.
for kind, named in ("path", name), ("path", name.split("/")[1]), ("session", sess["name"]):
    before = stats()[2]["src_addr"]
    assert ask(kind, "disconnect", named) == {"ok": True}
    h.pwrite(b"x" * 4096, 4096)
    assert h.pread(4096, 4096) == b"x" * 4096
    h.flush()
    assert stats()[2]["src_addr"] != before
    assert stats()[2]["name"] == name
END
# The log has that name, and no other.
wait_line "$server_log" 'path down: disconnected by rtrsctl'
path_name=$(sed -n -E 's/.* ([^ ]+): path down: disconnected by rtrsctl$/\1/p' "$server_log" |
	sort -u)
is "names in the log" "$path_name" \
	"$(sed -n -E 's/.* ([^ ]+): path up, .*/\1/p' "$server_log" | grep -v -e '-probe/' |
		sort -u)"
"$rtrsctl" list | grep -x -F "    path $path_name"

# Another client on the same machine: then the session tells which.
nbdkit1=$nbdkit_pid
start_nbdkit "127.0.0.1:$server_port" export=other control=none
wait_line "$server_log" "session nbdkit-.*-$nbdkit_pid-[0-9a-f]*\$"
is "paths" "$("$rtrsctl" list | grep -c '^    path ')" 2
full="'/nbdkit-[^ ]*/${path_name#*/}'"
expect_failure 1 \
	"2 sessions have a path '${path_name#*/}': expected $full or $full\$" \
	"$rtrsctl" path disconnect "${path_name#*/}"
"$rtrsctl" path disconnect "$path_name"
stop_process "$nbdkit_pid"

# Who has an export open, and how; and a session that has nothing open.
start_nbdkit "127.0.0.1:$server_port" mode=ro sessname=idle control=none
start_nbdkit "127.0.0.1:$server_port" export=disk mode=ro sessname=reader control=none
sessions_are_up() {
	[ "$("$rtrsctl" show | grep -c '^    state *up$')" = 3 ]
}
wait_until "three sessions" sessions_are_up
nbdsh_run "$uri1" <<END
import subprocess
reader = nbd.NBD()
reader.connect_uri("$uri")
status = subprocess.run(["./rtrsctl", "status"], stdout=subprocess.PIPE, check=True).stdout.decode()
print(status)
rows = [line.replace("8 MiB", "8MiB").split() for line in status.splitlines()]
writer = "$path_name".split("/")[0]
assert rows[0] == "EXPORT SIZE MODE STATE SESSION PEER TRANSPORT IOPS MB/s p50 p99 ERR".split()
assert ["disk", "8MiB", "rw", "up", writer, "127.0.0.1", "tcp"] in [r[:7] for r in rows]
assert ["disk", "8MiB", "ro", "up", "reader", "127.0.0.1", "tcp"] in [r[:7] for r in rows]
# The figures are of the export.
disks = [r[7:] for r in rows if r[0] == "disk"]
assert disks[0][:2] == ["0", "0.0"] and disks[1] == ['"'] * 5, disks
assert ["other", "8MiB", "ro", "-", "-", "-", "-", "0", "0.0", "-", "-", "0"] in rows
assert ["-", "-", "-", "up", "idle", "127.0.0.1", "tcp"] + ["-"] * 5 in rows
assert len(rows) == 5, rows
END
stop_process "$nbdkit_pid"
nbdkit_pid=$nbdkit1 uri=$uri1

# Taken away from one who has it open: its requests fail, and who opens it again has it.
nbdsh_run "$uri" <<'END'
import subprocess

h.pread(4096, 0)
subprocess.run(["./rtrsctl", "export", "kick", "disk"], check=True)
for attempt in range(2):
    try:
        h.pread(4096, 0)
        assert False, "a request of one who was kicked did not fail"
    except nbd.Error:
        pass
END
wait_until "the end of its connection" nbdkit_idle "$nbdkit_pid"
nbdsh_run "$uri" <<<'h.pread(4096, 0)'
nobody_has_it() {
	[ "$(json "ex['users']" show)" = 0 ]
}
wait_until "the close of the export" nobody_has_it
expect_failure 1 "no session has export 'other' open" "$rtrsctl" export kick other
expect_failure 1 "there is no export 'none'" "$rtrsctl" export kick none

# Text for people.
"$rtrsctl" status >"$tmp/status"
grep -E '^EXPORT +SIZE +MODE +STATE +SESSION +PEER +TRANSPORT +IOPS +MB/s +p50 +p99 +ERR$' \
	"$tmp/status"
grep -E '^disk +8 MiB +rw +' "$tmp/status"
grep -E '^other +8 MiB +ro +- +- +- +- +0 +0\.0 +- +- +0$' "$tmp/status"
"$rtrsctl" stats | grep -E '^    OP +COUNT +BYTES +ERRORS +p50 +p99 +p99.9$'

"$rtrsctl" log-level debug
is "log level" "$("$rtrsctl" log-level)" "log_level  debug"

# Refused, with the program's reason; and mistakes.
expect_failure 1 "session 'nobody' is not connected" "$rtrsctl" session disconnect nobody
expect_failure 1 'policy is a command for a gateway .*, and no such program runs on this machine' \
	"$rtrsctl" policy
expect_failure 1 "rtrs-server has no command 'policy'" "$rtrsctl" --socket "$socket" policy
expect_failure 2 'no command .kick disk. .did you mean export kick' "$rtrsctl" kick disk
expect_failure 2 'no command .add x=mem:1M.: see' "$rtrsctl" add x=mem:1M
expect_failure 1 "log-level 'loud': expected error, warning, info or debug$" \
	"$rtrsctl" log-level loud
expect_failure 1 "$tmp/none: No such file" "$rtrsctl" --socket "$tmp/none" list
for path in "$tmp" "$tmp/disk"; do
	expect_failure 1 \
		"^rtrsctl: $path: expected a control socket: this path is not a socket\$" \
		"$rtrsctl" --socket "$path" list
done
/usr/bin/python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$tmp/left"
expect_failure 1 "^rtrsctl: $tmp/left: Connection refused: the program is no longer running\$" \
	"$rtrsctl" --socket "$tmp/left" list
expect_failure 2 "^rtrsctl: .*--socket.* expected a path of 1 to 107 bytes\$" "$rtrsctl" \
	--socket "/$(printf %0107d 0)" list
# An answer without an end is not kept in memory until there is none; the longest one is read.
cat >"$tmp/talk.py" <<'END'
import signal, socket, sys
MAX = 64 << 20
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(2)
print("listens", flush=True)
for begin, end in (b'{"ok":true', b'}\n'), (b'{"ok":true', b' }\n'):
    client = listener.accept()[0]
    client.recv(4096)
    try:
        client.sendall(begin + b' ' * (MAX - len(begin) - len(b'}\n')) + end)
    except BrokenPipeError:
        pass
    client.close()
# The command is longer than what the kernel keeps of it, so that its end meets a closed socket.
client = listener.accept()[0]
client.sendall(b'{"ok":false,"error":"no room"}\n')
client.close()
signal.pause()
END
coproc talk { exec /usr/bin/python3 "$tmp/talk.py" "$tmp/talk"; }
cleanup_fn kill_process "$talk_PID"
read -r _ <&"${talk[0]}"
"$rtrsctl" --json --socket "$tmp/talk" list >"$tmp/answer" || fail "an answer of 64 MiB is not read"
expect_failure 1 "^rtrsctl: $tmp/talk: expected an answer of at most 64 MiB\$" "$rtrsctl" \
	--socket "$tmp/talk" list
# An answer that comes before the command has been sent is read.
long=$(printf '%0100000d' 0)
expect_failure 1 "^rtrsctl: no room\$" "$rtrsctl" --socket "$tmp/talk" export set disk "$long=1" \
	"$long=2" "$long=3" "$long=4"
if nbdkit --version >/dev/null 2>&1; then
	nbdkit -U "$tmp/nbd" -P "$tmp/nbd.pid" null
	wait_until "nbdkit" test -s "$tmp/nbd.pid"
	cleanup_fn stop_daemon "$(cat "$tmp/nbd.pid")"
	expect_failure 1 "$tmp/nbd: another kind of program listens there" \
		"$rtrsctl" --socket "$tmp/nbd" list
fi
if [ "$(id -u)" -eq 0 ] && setpriv --version >/dev/null 2>&1; then
	chmod 711 "$tmp" "$RUNTIME_DIRECTORY"
	cp "$rtrsctl" "$tmp/rtrsctl"
	expect_failure 1 \
		"$socket: Permission denied: only root and the user who runs the program may connect" \
		setpriv --reuid=65534 --clear-groups "$tmp/rtrsctl" --socket "$socket" list
fi
expect_failure 2 "did you mean status" "$rtrsctl" statuss
expect_failure 2 "which path" "$rtrsctl" path disconnect
expect_failure 2 "see rtrsctl --help" "$rtrsctl"
expect_failure 2 "log-level: 'debug' is one word too many: see" "$rtrsctl" log-level info debug
expect_failure 2 "resize: '12G' is one word too many: an export has the size of its storage: give " \
	"$rtrsctl" export resize disk 12G
# Words of other programs; a nearest name may be the opposite of what was meant.
while IFS='|' read -r words says; do
	# shellcheck disable=SC2086 # words
	expect_failure 2 "$says" "$rtrsctl" $words
done <<'END'
export rm disk|no command 'export rm' .did you mean export remove
export del disk|no command 'export del' .did you mean export remove
remove disk|no command 'remove disk': see
delete disk|no command 'delete disk': see
export list|no command 'export list': expected export add, remove, resize, kick, .*list
export|no command 'export': expected export add
path list|no command 'path list': expected path add, remove, disconnect, reconnect, save;
show disk|show: 'disk' is one word too many: this command is about all that is there
status disk|status: 'disk' is one word too many
restart|no command 'restart': systemd does that, as in: systemctl restart rtrs-server
help|no command 'help': expected rtrsctl --help
version|no command 'version': expected rtrsctl --version
export add disk /a|export add: '/a' is one word too many: expected NAME=PATH as one word
export set disk iops 4000|export set: 'iops': expected KEY=VALUE, as iops=4000$
export set disk readonly|export set: 'readonly': expected KEY=VALUE$
export set iops=4000|export set: which export. Expected its name in front of 'iops=4000'
export set disk|export set: expected KEY=VALUE after 'disk'
END
for seconds in 0 x 3601 -1 ''; do
	expect_failure 2 \
		"^rtrsctl: --watch '$seconds': expected a number of seconds from 1 to 3600\$" \
		"$rtrsctl" --watch=$seconds list
done
expect_failure 2 "^rtrsctl: --socket '': expected the path of a control socket\$" "$rtrsctl" \
	--socket= list
expect_failure 2 "^rtrsctl: option '--socket' needs a value: see" "$rtrsctl" list --socket
expect_failure 2 "^rtrsctl: option '--json=x' is unknown, ambiguous or takes no value: see" \
	"$rtrsctl" --json=x list
expect_failure 2 "^rtrsctl: option '--jsno' is unknown, .* .did you mean --json" "$rtrsctl" \
	--jsno list
expect_failure 2 "^rtrsctl: option '-x' is unknown, ambiguous or takes no value: see" "$rtrsctl" \
	-x list
expect_failure 2 "^rtrsctl: --dump takes no command, and 'list' is one\$" "$rtrsctl" --dump list

# With --json each of them is an object on standard output, and standard error is empty.
refused_json() {
	local want=$1 error=$2 status=0
	shift 2
	"$rtrsctl" "$@" >"$tmp/refused" 2>"$tmp/refused.err" || status=$?
	is "status of $*" $status "$want"
	is "standard error of $*" "$(cat "$tmp/refused.err")" ""
	is "refusal of $*" "$(/usr/bin/python3 -c 'import json, sys
a = json.load(sys.stdin)
assert a["ok"] is False
print(a["error"])' <"$tmp/refused")" "$error"
}
refused_json 1 "rtrs-server has no command 'policy'" --json --socket "$socket" policy
refused_json 1 "session 'nobody' is not connected" session disconnect nobody --json
refused_json 1 "$tmp/none: No such file or directory" --json --socket "$tmp/none" list
refused_json 1 "$tmp/none: No such file or directory" --json --socket "$tmp/none" status
refused_json 2 "no command 'statuss' (did you mean status?): see rtrsctl --help" --json statuss
refused_json 2 "--watch 'x': expected a number of seconds from 1 to 3600" --watch=x --json list
refused_json 2 "option '--what' is unknown, ambiguous or takes no value: see rtrsctl --help" \
	--what list --json
refused_json 2 "no command: see rtrsctl --help" --json
RUNTIME_DIRECTORY=$tmp/empty refused_json 1 \
	"no program with a control socket in $tmp/empty: is its unit running (systemctl status '*rtrs*')? \
For a socket elsewhere see --socket" --json list

# What is no command is told what one looks like.
said=$(/usr/bin/python3 - "$socket" <<'END'
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    for line in b"{}\n", b'{"command":5}\n':
        s.sendall(line)
        print(s.recv(4096).decode(), end="")
END
)
is "what it said" "$said" \
	'{"ok":false,"error":"\"command\" is missing: expected one like {\"command\":\"list\"}"}
{"ok":false,"error":"\"command\" is no string: expected one like {\"command\":\"list\"}"}'

# Two programs: questions go to both; a command is not done until one is chosen.
first=$socket
start_server --control "$tmp/here.sock" "x=$tmp/other,readonly"
is list "$("$rtrsctl" --socket "$tmp/here.sock" list | tail -n 1)" "  export x"
start_server "y=$tmp/other,readonly"
"$rtrsctl" list >"$tmp/both"
is "programs" "$(grep -c '^rtrs-server ' "$tmp/both")" 2
grep -x "  export disk" "$tmp/both"
grep -x "  export y" "$tmp/both"
is "answers in JSON" "$("$rtrsctl" --json list | wc -l)" 2
"$rtrsctl" status >"$tmp/both" || [ $? -eq 3 ]
grep -x "rtrs-server y, process $server_pid" "$tmp/both"
status=0
"$rtrsctl" stats reset 2>"$tmp/several" || status=$?
is "status" $status 2
grep -x -F "  rtrsctl --name=disk stats reset" "$tmp/several"
grep -x -F "  rtrsctl --name=y stats reset" "$tmp/several"
refused_json 2 "several programs run: choose one" --json stats reset
is "sockets to choose from" \
	"$(/usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["sockets"])' \
		<"$tmp/refused")" \
	"$(printf '%s\n' "$first" "$RUNTIME_DIRECTORY/server-$server_pid.sock" | LC_ALL=C sort |
		/usr/bin/python3 -c 'import sys; print(sys.stdin.read().split())')"
is "programs" "$("$rtrsctl" --dump | grep -c '^rtrs-server ')" 2
# One that was killed leaves its socket, which is no program, and is removed.
kill_process "$server_pid"
[ -S "$RUNTIME_DIRECTORY/server-$server_pid.sock" ]
only_first() {
	[ "$("$rtrsctl" list | grep -c '^rtrs-server ')" -eq 1 ] &&
		[ ! -e "$RUNTIME_DIRECTORY/server-$server_pid.sock" ]
}
# The kernel closes what a ring of the dead had in hand some time after the process has ended.
wait_until "the end of its socket" only_first
# A live one's socket is not taken.
status=0
"$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control "$first" "x=$tmp/other,readonly" >"$tmp/said" \
	2>"$tmp/taken" || status=$?
is "status" $status 1
is "what it said" "$(cat "$tmp/said")" ""
grep -E "error: --control $first: process [0-9]+ listens there\$" "$tmp/taken"
[ -S "$first" ]
start_server --control none "x=$tmp/other,readonly"
must_fail ls "$RUNTIME_DIRECTORY/server-$server_pid.sock"

# What protects requests has one name, in the log and here.
protection_is() {
	start_server --control "$tmp/protection.sock" ${1:+"--invalidate=$1"} \
		"x=$tmp/other,readonly"
	start_nbdkit "127.0.0.1:$server_port" export=x control=none transport=tcp
	wait_line "$server_log" "session nbdkit-.*-$nbdkit_pid-[0-9a-f]*\$"
	is "protection" \
		"$("$rtrsctl" --socket "$tmp/protection.sock" show |
			sed -n 's/^ *invalidate  *//p' | sort -u)" "$2"
	grep -q -E "$3" "$server_log"
	stop_process "$nbdkit_pid"
	stop_server "$server_pid"
}
protection_is "" suspend "info: requests over tcp: invalidate is suspend\$"
protection_is always always "info: requests over tcp: invalidate is always: MW1\$"
protection_is copy copy "info: write buffers .* \(--invalidate=copy\)\$"
protection_is never never "info: write buffers .* \(--invalidate=never\)\$"

# Too little memory: an answer is whole, or an error says so, and a line is never empty.
[ "$SANITIZERS" = no ] && [ -z "${VALGRIND_TESTS-}" ] || exit 0
many=()
for i in {1..100}; do many+=("x$i=mem:1M"); done
start_server --control "$tmp/many.sock" "${many[@]}"
kib=600 whole=''
while [ -z "$whole" ]; do
	[ $((kib += 8)) -lt 8192 ] || fail "no answer with $kib KiB"
	status=0
	prlimit --data=$((kib * 1024)) "$rtrsctl" --json --socket "$tmp/many.sock" status \
		>"$tmp/few" 2>&1 || status=$?
	if grep -q '"x100"' "$tmp/few"; then
		whole=1
		is exports "$(with_json "print(len(a['exports']))" <"$tmp/few")" 100
	else
		[ $status -ne 0 ]
		grep -q -E 'emory|cannot allocate|shared' "$tmp/few" || fail "$kib: $(cat "$tmp/few")"
	fi
done
