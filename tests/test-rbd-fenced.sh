#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A server that the cluster has fenced reads nothing of the image any more, also when the cluster
# has forgotten the fence and the image may have another owner; and a server that was idle all the
# time finds out by itself, and so does "rtrsctl check".  Removed and added, the export is open
# again.
. ./tests/functions.sh
requires_server; requires_gateway
requires_plain_build
requires nbdsh --version
. "$top_srcdir/tests/ceph.sh"

ceph_start
image busy 8M
image idle 8M
start_server --control "$tmp/control" "busy=$(image_spec busy)" "idle=$(image_spec idle)"
start_gateway "server=127.0.0.1:$server_port"
ctl=(timeout $((4 * TIMEOUT_S)) "$top_builddir/rtrsctl" --socket "$tmp/control")

address() { rbd_ lock ls "rbd/$1" | awk '/^client/ { print $NF }'; }
at() { echo "nbd+unix:///$1?socket=$sock"; }
fails_to_read() {
	nbdsh_run "$(at "$1")" <<-'PY'
	must_fail(lambda: h.pread(4096, 0), "EIO", "a fenced server reads")
	PY
}
# blocklist COMMAND...: returns when the osd knows.  The monitor answers before, and until then the
# osd serves the client.  A new client has the map of the monitor, and the osd waits for that one.
blocklist() {
	ceph_ osd blocklist "$@"
	rbd_ info rbd/busy >"$tmp/info"
}
nbdsh_run "$(at busy)" <<<'h.pwrite(b"a" * 4096, 0, nbd.CMD_FLAG_FUA)'
nbdsh_run "$(at idle)" <<<'h.pwrite(b"a" * 4096, 0, nbd.CMD_FLAG_FUA)'
busy=$(address busy) idle=$(address idle)
blocklist add "$busy" 3600
fails_to_read busy
grep "busy: READ of .* failed: the cluster has fenced this server" "$server_log"
must_fail grep "idle: the cluster" "$server_log"

# No client asks for anything of the other image.
blocklist add "$idle" 3600
wait_line "$server_log" "idle: the cluster has fenced this server"
# check_says STATUS REGEX
check_says() {
	local status=0
	"${ctl[@]}" check >"$tmp/check" || status=$?
	cat "$tmp/check"
	[ $status -eq "$1" ] && grep -q -E -- "$2" "$tmp/check"
}
check_says 2 'CRITICAL.*: idle fenced: .*each request fails: remove the export and add it again' ||
	fail "a fenced export without requests is well"

# The cluster forgets, and another client writes.
blocklist rm "$busy"
blocklist rm "$idle"
for name in busy idle; do
	fails_to_read $name
	rbd_ bench --io-type write --io-size 4096 --io-total 4096 --io-threads 1 "rbd/$name"
	fails_to_read $name
	"${ctl[@]}" export remove $name
	"${ctl[@]}" export add "$name=$(image_spec $name)"
	nbdsh_run "$(at $name)" <<<'assert h.pread(1, 0) != b"a"'
done
check_says 0 'RTRS OK' || fail "an export that was added again is not well"
