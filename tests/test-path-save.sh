#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl path save" of a gateway: what is written, and that the next reload and the next start
# have the same paths; which paths come back, because a file of the administrator has them; at the
# limit of 16 paths; behind a reload that is carried out; and what cannot be saved is refused with
# the reason, and the file of before stays.
. ./tests/functions.sh
requires_server; requires_gateway

conf=$tmp/gw.conf
saved=$conf.d/rtrsctl-saved.conf
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/client.ctl")

# conf LINE...: the file of config=
conf() {
	printf '%s\n' 'export = disk' 'connect-timeout = forever' "$@" >"$conf.new"
	mv "$conf.new" "$conf"
}
# ctl_says COMMAND LINE...: the command succeeds, and prints these lines, in any order
ctl_says() {
	local command=$1
	shift
	# shellcheck disable=SC2086 # words
	"${ctl[@]}" $command >"$tmp/said"
	diff -u <([ $# -eq 0 ] || printf '%s\n' "$@" | sort) <(sort "$tmp/said") ||
		fail "$command says something else"
}
saves() { ctl_says "path save" "$@"; }
reloads() { ctl_says reload "$@"; }
refused() { expect_failure 1 "$1" "${ctl[@]}" path save; }
# holds PATH...: the file has these paths
holds() {
	diff -u <(printf 'path = %s\n' "$@" | sort) <(grep -v '^#' "$saved" | sort) ||
		fail "$saved has something else"
	[ -z "$(find "$conf.d" -name '*.tmp')" ] || fail "a file is left behind"
}
paths() { "${ctl[@]}" list | sed -n 's/^ *path //p' | tr '\n' ' '; }
are_paths() { [ "$(paths)" = "$*" ]; }
start() { start_gateway control="$tmp/client.ctl" "$@"; }

start_server disk=mem:1M --listen tcp://127.0.0.1:0 --listen "unix:$tmp/server.sock"
a=127.0.0.1:$server_port
conf "server = $a"

# ---- each form of a path comes back as it was ----

start config="$conf"
for path in 127.0.0.2:7 127.0.0.9@127.0.0.2:7 '[::1]:7' '[::1]@[::1]:8' "unix:$tmp/server.sock" \
	"unix:$tmp/# a;b\" " nohost.invalid:7; do
	"${ctl[@]}" path add "$path"
done
all=$(paths)
saves "saved path tcp://127.0.0.2:7" "saved path tcp://127.0.0.9@127.0.0.2:7" \
	"saved path tcp://[::1]:7" "saved path tcp://[::1]@[::1]:8" \
	"saved path unix:$tmp/server.sock" "saved path unix:$tmp/# a;b\" " \
	"saved path tcp://nohost.invalid:7"
holds tcp://127.0.0.2:7 tcp://127.0.0.9@127.0.0.2:7 'tcp://[::1]:7' 'tcp://[::1]@[::1]:8' \
	"unix:$tmp/server.sock" "\"unix:$tmp/# a;b\"\" \"" tcp://nohost.invalid:7
reloads
are_paths "$all" || fail "a reload does not have what was saved"
stop_process "$gateway_pid"
start config="$conf"
are_paths "$all" || fail "a start does not have what was saved"

# A path that no file can have: nothing is written.
line=$'unix:/a\nb'
"${ctl[@]}" path add "$line"
refused "path 'unix:/a.b' cannot be saved: its name has a byte that no line of a file can have"
"${ctl[@]}" path remove 'unix:/a?b'
stop_process "$gateway_pid"

# ---- what goes, and what comes back ----

printf 'path = 127.0.0.3:7\n' >"$conf.d/net3.conf"
printf 'path = 127.0.0.2:7\npath = 127.0.0.4:7\n' >"$saved"
conf "server = $a" 'path = 127.0.0.2:7'
start config="$conf"
are_paths "$a 127.0.0.2:7 127.0.0.3:7 127.0.0.4:7 "
# The administrator's file has the path by now: it leaves ours.
saves 'saved path tcp://127.0.0.4:7'
holds tcp://127.0.0.4:7
# Of the administrator; of another file of his; of ours.
"${ctl[@]}" path remove 127.0.0.2:7
"${ctl[@]}" path remove 127.0.0.3:7
"${ctl[@]}" path remove 127.0.0.4:7
"${ctl[@]}" path add 127.0.0.5:7
gone=("path 127.0.0.2:7 comes back: take it out, it is still in $conf:4"
	"path 127.0.0.3:7 comes back: take it out, it is still in $conf.d/net3.conf:1")
saves 'saved path tcp://127.0.0.5:7' "${gone[@]}"
holds tcp://127.0.0.5:7
reloads '+path 127.0.0.2:7' '+path 127.0.0.3:7'
"${ctl[@]}" path remove 127.0.0.5:7
saves
[ ! -e "$saved" ] || fail "the file stays although no path is left to save"
saves
# A mistake in the program's file is none of a save, which replaces it.
echo x >"$saved"
expect_failure 1 "$saved:1: 'x': expected NAME = VALUE" "${ctl[@]}" reload
saves
[ ! -e "$saved" ]
rm "$conf.d/net3.conf"

# A file with a mistake: the next start would not read it.
"${ctl[@]}" path add 127.0.0.5:7
conf "server = $a" 'exprt = x'
refused "$conf:4: 'exprt' is no option"
[ ! -e "$saved" ]
# A transport that the files rule out.
conf "server = $a" 'transport = rdma'
refused 'contradicts path=tcp://127|built without RDMA'
conf "server = $a"

# ---- 16 paths ----

"${ctl[@]}" reload
are_paths "$a "
lines=("server = $a")
for i in {2..14}; do
	lines+=("path = 127.0.0.$i:7")
done
conf "${lines[@]}"
"${ctl[@]}" reload
add() { "${ctl[@]}" path add "$1"; }
add 127.0.0.15:7
add 127.0.0.16:7
expect_failure 1 'a session has at most 16 paths' "${ctl[@]}" path add 127.0.0.17:7
saves 'saved path tcp://127.0.0.15:7' 'saved path tcp://127.0.0.16:7'
reloads
# The 17th, in a file.
conf "${lines[@]}" 'path = 127.0.0.17:7'
expect_failure 1 \
	"$saved:3: path 'tcp://127.0.0.16:7': a session has at most 16 paths, those of all files" \
	"${ctl[@]}" reload
# One that the administrator writes down, too, counts once, and is saved no longer.
conf "${lines[@]}" 'path = 127.0.0.16:7'
reloads
saves 'saved path tcp://127.0.0.15:7'
reloads
# The 17th of a save: one is removed and in a file, another one is added.
"${ctl[@]}" path remove 127.0.0.2:7
wait_until "room for a path" add 127.0.0.17:7
"${ctl[@]}" path save >"$tmp/why" 2>&1 && fail "17 paths are saved"
diff -u - "$tmp/why" <<-END2
	rtrsctl: nothing is saved: the next start would find 17 paths, and a session has at most 16: delete the removed paths from the files
	rtrsctl: path 127.0.0.2:7 was removed, and is still in $conf:4
END2
holds tcp://127.0.0.15:7
conf "${lines[0]}" "${lines[@]:2}" 'path = 127.0.0.16:7'
saves 'saved path tcp://127.0.0.15:7' 'saved path tcp://127.0.0.17:7'
reloads
stop_process "$gateway_pid"
start config="$conf"
[ "$(paths | wc -w)" -eq 16 ] || fail "not 16 paths after a start: $(paths)"

stop_process "$gateway_pid"

# ---- behind a reload that waits for a path to come up ----

rm "$saved"
conf "server = $a"
start config="$conf"
add 127.0.0.5:7
# save_waits END: a save comes behind the reload, and ends as END, Python of its answer, says.
save_waits() {
	rm -f "$tmp/came"
	timeout $((2 * TIMEOUT_S)) /usr/bin/python3 - "$tmp" "$top_builddir/rtrsctl" "$1" \
		<<-'END2' &
		import json, os, socket, subprocess, sys
		tmp, rtrsctl, end = sys.argv[1:]
		s = socket.socket(socket.AF_UNIX)
		s.connect(tmp + "/client.ctl")
		s.sendall(b'{"command": "path save"}\n')
		# Commands that come later are answered: the save has come.
		for i in range(2):
		    subprocess.run([rtrsctl, "--socket", tmp + "/client.ctl", "list"],
		                   stdout=subprocess.DEVNULL, check=True)
		open(tmp + "/came", "w").close()
		answer = json.loads(s.makefile().readline())
		assert eval(end), answer
	END2
	save_pid=$!
	wait_until "the save" test -e "$tmp/came"
	[ ! -e "$saved" ] || fail "the save does not wait"
}
has_path() { [[ " $(paths)" = *" $1 "* ]]; }

# At its turn nothing is left to save: it would have saved the paths that leave.
conf "server = unix:$tmp/later.sock"
"${ctl[@]}" reload >"$tmp/late" &
late=$!
wait_until "the reload" has_path "unix:$tmp/later.sock"
save_waits 'answer["ok"]'
ln -s server.sock "$tmp/later.sock"
expect_exit $late 0
expect_exit "$save_pid" 0
are_paths "unix:$tmp/later.sock "
[ ! -e "$saved" ] || fail "the save has paths of before the reload"

# A program that ends carries out no save that waits.
add 127.0.0.5:7
conf 'server = 127.0.0.4:9'
"${ctl[@]}" reload >"$tmp/late" 2>&1 &
late=$!
wait_until "the reload" has_path 127.0.0.4:9
save_waits 'not answer["ok"] and "the program ends" in answer["error"]'
stop_process "$gateway_pid"
expect_exit $late 1
expect_exit "$save_pid" 0
[ ! -e "$saved" ]

# ---- what cannot be saved ----

# No file; and paths of the command line, which keep those of files out.
start "server=$a" export=disk
refused 'paths cannot be saved: the program was started without config=FILE'
stop_process "$gateway_pid"
conf 'path = 127.0.0.6:7'
start "server=$a" config="$conf"
add 127.0.0.5:7
refused 'server= or path= stands on the command line, and keeps the paths of all files out'
[ ! -e "$saved" ]
stop_process "$gateway_pid"

# The disk is full: the file of before stays.
requires_root
conf "server = $a"
mount -t tmpfs -o size=64k tmpfs "$conf.d" || skip "cannot mount a tmpfs here"
cleanup_umount "$conf.d"
start config="$conf"
add 127.0.0.5:7
saves 'saved path tcp://127.0.0.5:7'
head -c 1M /dev/zero >"$conf.d/ballast" 2>/dev/null && fail "the tmpfs is not full"
add 127.0.0.6:7
refused "^rtrsctl: $saved: No space left on device$"
holds tcp://127.0.0.5:7
rm "$conf.d/ballast"
saves 'saved path tcp://127.0.0.5:7' 'saved path tcp://127.0.0.6:7'

# A directory that may not be written, as one of a unit.
mount -o remount,ro "$conf.d"
add 127.0.0.7:7
refused "^rtrsctl: $saved: Read-only file system: the user of this program has to own the directory, and a unit has to find it when it starts: install -d -o $(id -u) $conf.d$"
holds tcp://127.0.0.5:7 tcp://127.0.0.6:7
mount -o remount,rw "$conf.d"
saves 'saved path tcp://127.0.0.5:7' 'saved path tcp://127.0.0.6:7' 'saved path tcp://127.0.0.7:7'
