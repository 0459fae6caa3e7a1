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
at() { echo "nbd+unix:///$1?socket=$sock"; }

cd "$tmp" || exit
load() {
	exec fio --name=load --ioengine=nbd --uri="$(at disk)" --rw=randwrite --bsrange=4k-64k \
		--size=64M --iodepth=16 --verify=crc32c --verify_state_save=0 --verify_fatal=1 \
		--verify_dump=0 --verify_backlog=256 --time_based --runtime=100000 --randrepeat=0 \
		--eta=never --trigger-file="$tmp/fio.enough"
}

# Writes and flushes of a second client, each one noted when it is answered.
flushes() {
	nbdsh_long "$(at flushed)" <<-PY
	import os
	n = 0
	while not os.path.exists("$tmp/enough"):
	    n += 1
	    h.pwrite(n.to_bytes(8, "big") * 512, 4096 * (n % 4096))
	    if n % 8 == 0:
	        h.flush()
	        with open("$tmp/flushed.new", "w") as f:
	            f.write(str(n))
	        os.rename("$tmp/flushed.new", "$tmp/flushed.n")
	PY
}
nbdsh_long() { nbdsh -u "$1" -c -; }

counted() { "$top_builddir/rtrsctl" --socket "$tmp/control" --json stats; }
# The writes of an image since the server began.
writes() {
	counted | /usr/bin/python3 -c '
import json, sys
print(*(e["stats"]["write"]["count"] for e in json.load(sys.stdin)["exports"]
        if e["name"] == "'"$1"'"))'
}
# Longer than other waits: an osd that comes back replays and waits for its leases.
went_on() { [ "$(writes disk)" -gt "$(($1 + 100))" ] && [ "$(writes flushed)" -gt "$(($2 + 16))" ]; }
goes_on() {
	TIMEOUT_S=$((3 * TIMEOUT_S)) wait_until "writes after $1" went_on \
		"$(writes disk)" "$(writes flushed)"
}

load >"$tmp/fio.log" 2>&1 &
fio=$!
flushes >"$tmp/flushes.log" 2>&1 &
flushes=$!
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
	[ $status -eq 2 ] && grep -E 'disk waits [0-9]+ s for its storage' "$tmp/check"
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
wait_until "a flush" test -s "$tmp/flushed.n"
kill_process "$server_pid"
flushed=$(cat "$tmp/flushed.n")
image_export flushed "$tmp/image"
/usr/bin/python3 - "$tmp/image" "$flushed" <<'PY'
import sys
image, flushed = open(sys.argv[1], "rb").read(), int(sys.argv[2])
for n in range(max(1, flushed - 4095), flushed + 1):
    at = 4096 * (n % 4096)
    block = image[at:at + 4096]
    now = int.from_bytes(block[:8], "big")
    # The slot may have a later write.
    assert now >= n and now % 4096 == n % 4096 and block == block[:8] * 512, (n, now)
PY
serve
goes_on "the end of faults"

: >"$tmp/enough"
: >"$tmp/fio.enough"	# fio removes its own
TIMEOUT_S=$((3 * TIMEOUT_S))
expect_exit $flushes 0
expect_exit $fio 0
grep -q 'err= 0' "$tmp/fio.log"
grep 'the lock of a server that was killed, .*, is broken' "$server_log"
echo "$((faults + 1)) killed servers, $osd_faults killed osds"
