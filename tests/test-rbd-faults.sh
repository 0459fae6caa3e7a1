#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A load that verifies, on an image of a real Ceph, while the osd is killed and started, is frozen,
# and the server is killed and started: IO waits, nothing fails, no byte is wrong, and what a FLUSH
# answered for is in the image.  RBD_FAULTS=N: N faults of each kind (check.sh --full=rbd: 20).
# Without it the server is killed twice and the osd once.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires fio --enghelp=nbd
requires nbdsh --version
. "$top_srcdir/tests/ceph.sh"
. "$top_srcdir/tests/shared-load.sh"
faults=${RBD_FAULTS:-2}
osd_faults=${RBD_FAULTS:-1}
frozen_s=${RBD_FROZEN_S:-3}

ceph_start
ceph_user gw mon 'profile rbd' osd 'profile rbd pool=rbd'
image disk 64M
image flushed 16M
serve() {
	start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/control" \
		"disk=$(image_spec disk)" "flushed=$(image_spec flushed),id=gw" other=mem:8M
}
serve
start_nbdkit "server=unix:$tmp/rtrs.sock" "io-timeout=$((10 * TIMEOUT_S))"

shared_load_start
goes_on "the start"
for ((turn = 0; turn < faults; turn++)); do
	if [ "$turn" -lt "$osd_faults" ]; then
		osd_kill
		osd_start
		goes_on "osd $turn was killed"
	fi
	kill_process "$server_pid"
	serve
	goes_on "server $turn was killed"
done

# Without an osd the server says who waits, and all else goes on: control, heartbeats, other
# exports, new clients.
says_waiting() {
	local status=0
	"$top_builddir/rtrsctl" --socket "$tmp/control" check >"$tmp/check" || status=$?
	[ $status -ge 1 ] && grep -E 'disk waits [0-9]+ s for its storage' "$tmp/check"
}
osd_freeze
frozen=$SECONDS
wait_until "a word of the wait" says_waiting
nbdsh_run "$(at other)" <<-'PY'
h.pwrite(b"o" * 4096, 0)
h.flush()
assert h.pread(4096, 0) == b"o" * 4096
PY
must_fail grep 'other waits' "$tmp/check"
long_enough() { [ $((SECONDS - frozen)) -ge "$frozen_s" ]; }
wait_until "the end of the frost" long_enough
osd_thaw
goes_on "the osd was frozen"

# The power of the server fails: what was flushed is in the image, by another reader.
flushed=$(flushed_by_now)
kill_process "$server_pid"
flushed_check "$flushed"
serve
goes_on "the end of faults"

shared_load_end
grep 'the lock of a server that was killed, .*, is broken' "$server_log"
echo "$((faults + 1)) killed servers, $osd_faults killed osds"
