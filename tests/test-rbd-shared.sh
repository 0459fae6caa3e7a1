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

flushed=$(flushed_by_now)
at=$(owner)
kill_process "${pid[$at]}"
flushed_check "$flushed"
goes_on "the end of faults"
load_end
echo "$((faults + 1)) killed and $faults frozen servers, the longest wait for a write was" \
	"$(cat "$tmp/longest") ms"
