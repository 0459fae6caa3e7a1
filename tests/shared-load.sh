# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A load on two stores of two servers, for tests of faults: fio writes and verifies the export
# "disk", and a second client writes and flushes the export "flushed".  ceph.sh has image_export().
#
#	shared_load_start		of the exports at $sock
#	goes_on WHAT		waits until both clients had answers; WHAT was before
#	shared_load_end		no error, no wrong byte
#	flushes_hold; flushes_go_on	the second client has unflushed writes, none in flight
#	flushed_by_now; flushed_check N		what a FLUSH answered for before is in the image
#
# The servers are "a" and "b".  The test has serve SERVER, which starts one with the control socket
# $tmp/SERVER.ctl and sets pid[SERVER].
#
#	owns SERVER EXPORT	that server has the lock
#	owner; other_than SERVER	who has that of "disk"
#	stands_by		the client uses one path, and the other one waits
#	shared_kills N		N kills of the owner: the other server goes on each time
# shellcheck disable=SC2154 # tmp, sock, nbdkit_pid, pid

at() { echo "nbd+unix:///$1?socket=$sock"; }

shared_load_fio() {
	cd "$tmp" || exit
	exec fio --name=load --ioengine=nbd --uri="$(at disk)" --rw=randwrite --bsrange=4k-64k \
		--size=64M --iodepth=16 --verify=crc32c --verify_state_save=0 --verify_fatal=1 \
		--verify_dump=0 --verify_backlog=256 --time_based --runtime=100000 --randrepeat=0 \
		--eta=never
}

# Writes and flushes of a second client, each flush noted when it is answered; and how many writes
# were answered, and the longest wait for one, in ms.
shared_load_flushes() {
	nbdsh -u "$(at flushed)" -c - <<-PY
	import os, time
	def note(name, value):
	    with open("$tmp/" + name + ".new", "w") as f:
	        f.write(str(value))
	    os.rename("$tmp/" + name + ".new", "$tmp/" + name)
	n, longest = 0, 0
	while not os.path.exists("$tmp/enough"):
	    n += 1
	    since = time.monotonic()
	    h.pwrite(n.to_bytes(8, "big") * 512, 4096 * (n % 4096))
	    longest = max(longest, time.monotonic() - since)
	    if n % 8 == 0:
	        h.flush()
	        note("flushed.n", n)
	        note("longest", round(1000 * longest))
	    while n % 8 == 4 and os.path.exists("$tmp/hold"):
	        note("held", n)
	        time.sleep(0.01)
	PY
}

flushes_hold() {
	rm -f "$tmp/held"
	: >"$tmp/hold"
	wait_until "a client between two flushes" test -s "$tmp/held"
}
flushes_go_on() { rm "$tmp/hold"; }

shared_load_start() {
	shared_load_fio >"$tmp/fio.log" 2>&1 &
	fio=$!
	shared_load_flushes >"$tmp/flushes.log" 2>&1 &
	flushes=$!
}

shared_load_end() {
	: >"$tmp/enough"
	kill -INT "$fio"	# what fio of all releases ends in good order at
	TIMEOUT_S=$((3 * TIMEOUT_S))
	expect_exit "$flushes" 0
	expect_exit "$fio" 128
	grep -q 'err= 0' "$tmp/fio.log"
}

server_show() { timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/$1.ctl" --json show; }
owns() {
	server_show "$1" | with_json '
states = {e["name"]: e["ana_state"] for e in a["exports"]}
sys.exit(states[sys.argv[1]] != "optimized")' "$2"
}
owner() { owns a disk && echo a || echo b; }
other_than() { [ "$1" = a ] && echo b || echo a; }
path_states() {
	"$top_builddir/rtrsctl" --socket "$tmp/state/nbdkit-$nbdkit_pid.sock" --json show |
		with_json 'print(*sorted(p["state"] for p in a["sessions"][0]["paths"]))'
}
stands_by() { [ "$(path_states)" = "connected standby" ]; }

shared_kills() {
	local n at

	for ((n = 0; n < $1; n++)); do
		at=$(owner)
		kill_process "${pid[$at]}"
		goes_on "server $at was killed"
		# The client opens it again after a path that was lost on a busy machine.
		wait_until "the lock of the other server" owns "$(other_than "$at")" disk
		serve "$at"
		wait_until "a path that stands by" stands_by
	done
}

# went_on COUNTS: both clients had some answers since.
went_on() {
	local before now

	read -ra before <<<"$1"
	read -ra now <<<"$(written)"
	[ "${now[0]}" -gt "$((before[0] + 100))" ] && [ "${now[1]}" -gt "$((before[1] + 16))" ]
}
load_ended() { process_ended "$fio" || process_ended "$flushes"; }
went_on_or_ended() { load_ended || went_on "$1"; }
# Longer than other waits: an osd that comes back replays and waits for its leases.  When nothing
# goes on, the last words of both clients and of their gateway say why.
goes_on() {
	{ local -; set +x; } 2>/dev/null
	local since
	since=$(written)
	if (TIMEOUT_S=$((3 * TIMEOUT_S)) &&
		wait_until "writes after $1" went_on_or_ended "$since") && ! load_ended; then
		return 0
	fi
	grep -E 'err=|error' "$tmp/fio.log" | tail -n 3
	tail -qn 3 "$tmp/flushes.log" "$nbdkit_log"
	fail "no writes after $1: fio $(state_of "$fio"), flushes $(state_of "$flushes")"
}
state_of() { process_ended "$1" && echo ended || echo runs; }

# Writes answered by the gateway: of "disk", of "flushed".
written() {
	"$top_builddir/rtrsctl" --socket "$tmp/state/nbdkit-$nbdkit_pid.sock" --json stats |
		with_json '
exports = {e["name"]: e for e in a["exports"]}
print(*(exports[n]["stats"]["write"]["count"] if n in exports else 0
        for n in ("disk", "flushed")))'
}

flushed_by_now() {
	wait_until "a flush" test -s "$tmp/flushed.n"
	cat "$tmp/flushed.n"
}

# The slot of a write may have a later one.
flushed_check() {
	image_export flushed "$tmp/image"
	/usr/bin/python3 - "$tmp/image" "$1" <<-'PY'
	import sys
	image, flushed = open(sys.argv[1], "rb").read(), int(sys.argv[2])
	for n in range(max(1, flushed - 4095), flushed + 1):
	    at = 4096 * (n % 4096)
	    block = image[at:at + 4096]
	    now = int.from_bytes(block[:8], "big")
	    assert now >= n and now % 4096 == n % 4096 and block == block[:8] * 512, (n, now)
	PY
}
