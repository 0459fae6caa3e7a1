#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two servers share two images of a real Ceph (shared=yes), and the client has a path to each: when
# the server that writes is killed or frozen, the other one breaks its lock and goes on, and a
# server that thaws is fenced.  Nothing fails, no byte is wrong, what a FLUSH answered for is in the image.
# RBD_SHARED=N: N faults of each kind (check.sh --full=rbd: 50).
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires fio --enghelp=nbd
requires nbdsh --version
. "$top_srcdir/tests/ceph.sh"
. "$top_srcdir/tests/rbd-load.sh"
faults=${RBD_SHARED:-2}

# No other kind of storage has a lock that fences.
for other in "$tmp/file" mem:8M; do
	truncate -s 8M "$tmp/file"
	must_fail "$RTRS_SERVER" --check "d=$other,shared=yes" 2>"$tmp/refused"
	grep -E 'shared=yes: (no lock of a file system|memory belongs)' "$tmp/refused"
done
must_fail "$RTRS_SERVER" --check "d=rbd:rbd/disk,shared=maybe" 2>"$tmp/refused"
grep "shared='maybe': expected yes or no" "$tmp/refused"

ceph_start
image disk 64M
image flushed 16M
declare -A pid log
serve() {
	mkdir -p "$tmp/$1.state"
	start_server --listen "unix:$tmp/$1.sock" --control "$tmp/$1.ctl" \
		--state-dir "$tmp/$1.state" \
		"disk=$(image_spec disk),shared=yes" "flushed=$(image_spec flushed),shared=yes"
	pid[$1]=$server_pid
	log[$1]=$server_log
}
server_show() { timeout 5 "$top_builddir/rtrsctl" --socket "$tmp/$1.ctl" --json show; }
# owns SERVER EXPORT
owns() {
	server_show "$1" | /usr/bin/python3 -c '
import json, sys
states = {e["name"]: e["ana_state"] for e in json.load(sys.stdin)["exports"]}
sys.exit(states[sys.argv[1]] != "optimized")' "$2"
}
owner() { owns a disk && echo a || echo b; }
other_than() { [ "$1" = a ] && echo b || echo a; }
path_states() {
	"$top_builddir/rtrsctl" --socket "$tmp/state/nbdkit-$nbdkit_pid.sock" --json show |
		/usr/bin/python3 -c '
import json, sys
print(*sorted(p["state"] for p in json.load(sys.stdin)["sessions"][0]["paths"]))'
}
stands_by() { [ "$(path_states)" = "connected standby" ]; }
log_has() { grep -q "$2" "${log[$1]}"; }

serve a
serve b
start_nbdkit "path=unix:$tmp/a.sock" "path=unix:$tmp/b.sock" heartbeat=500 heartbeat-misses=2 \
	"io-timeout=$((10 * TIMEOUT_S))"
wait_until "a path that stands by" stands_by
load_start
goes_on "the start"
# A session has one server, so both exports are with it.
at=$(owner)
owns "$at" flushed
must_fail owns "$(other_than "$at")" disk

for ((turn = 0; turn < faults; turn++)); do
	at=$(owner)
	kill_process "${pid[$at]}"
	goes_on "server $at was killed"
	owns "$(other_than "$at")" disk
	serve "$at"
	wait_until "a path that stands by" stands_by
done

# A frozen server may think that it is the owner: its requests fail in the cluster, and no client
# sees their answers.
for ((turn = 0; turn < faults; turn++)); do
	at=$(owner)
	kill -STOP "${pid[$at]}"
	goes_on "server $at was frozen"
	kill -CONT "${pid[$at]}"
	wait_until "a path that stands by" stands_by
	must_fail owns "$at" disk
done

# Power fails: what was flushed is in the image, by another reader.
flushed=$(flushed_by_now)
at=$(owner)
kill_process "${pid[$at]}"
flushed_check "$flushed"
goes_on "the end of faults"
load_end

# The commands of rtrs-guide(7): what they print for one server is typed for both.
image disk3 64M
rbd_ rm --no-progress rbd/disk3
ceph_user rtrs mon 'profile rbd' osd 'profile rbd pool=rbd'
for head in head1 head2; do
	mkdir -p "$tmp/$head/etc/rtrs-server.conf.d" "$tmp/$head/run" "$tmp/$head.state"
	printf '[server]\nlisten = unix:%s\n' "$tmp/$head.sock" >"$tmp/$head/etc/rtrs-server.conf"
	start_server --config "$tmp/$head/etc/rtrs-server.conf" --control "$tmp/$head.ctl" \
		--state-dir "$tmp/$head.state"
	pid[$head]=$server_pid
	log[$head]=$server_log
done
rtrsctl() { "$top_builddir/rtrsctl" --socket "$tmp/$head.ctl" "$@"; }
typed=0
type_command() {
	typed=$((typed + 1))
	case $head/$1 in
	"head1/rbd create"*) eval "$1" ;;
	*/cat*)
		eval "$1"
		echo "conf = $CEPH_CONF" >>"$tmp/$head/etc/rtrs-server.conf.d/disk3.conf"
		;;
	*/"rtrsctl reload") eval "$1" ;;
	head2/rtrs-nbd*)
		# start_gateway() has a socket of its own.
		[[ $1 =~ ^"rtrs-nbd -U $tmp/head2/run/disk3.sock path=head1 path=head2 "(.*)$ ]]
		start_gateway path="unix:$tmp/head1.sock" path="unix:$tmp/head2.sock" \
			heartbeat=500 heartbeat-misses=2 "${BASH_REMATCH[1]}"
		;;
	"head2/rbd create"* | head1/rtrs-nbd*) ;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $1" ;;
	esac
}
for head in head1 head2; do
	/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" \
		heads "$tmp/$head" >"$tmp/commands"
	while IFS= read -r word <&3; do
		eval "command=$word"
		type_command "$command"
	done 3<"$tmp/commands"
done
[ $typed -eq 8 ]
# The first write brings the lock, the second one meets a dead server.
nbdsh_run "$uri" <<-PY
import os, signal, subprocess
def owner():
    for head, pid in ("head1", ${pid[head1]}), ("head2", ${pid[head2]}):
        show = subprocess.run(["$top_builddir/rtrsctl", "--socket", f"$tmp/{head}.ctl", "--json",
                               "show"], capture_output=True, check=True).stdout
        if b'"ana_state":"optimized"' in show:
            return pid
h.pwrite(b"1" * 4096, 0)
os.kill(owner(), signal.SIGKILL)
h.pwrite(b"2" * 4096, 4096)
assert h.pread(8192, 0) == b"1" * 4096 + b"2" * 4096
PY

echo "$((faults + 1)) killed and $faults frozen servers, the longest wait for a write was" \
	"$(cat "$tmp/longest") ms"
