#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The rates of "rtrsctl status" when somebody resets the counters between its two questions: those
# of what was counted since, and never the difference to what was there before.  The program that
# answers is made by hand.
. ./tests/functions.sh
[ -x "$top_builddir/rtrsctl" ] || skip "no rtrsctl here"

# Each case: what is counted at the first and at the second question, a second later, as [count,
# bytes, log2_ns].
cat >"$tmp/program.py" <<'END'
import json, os, socket, sys

A = [10, 40960, [0] * 12 + [10]]
cases = [
    # Nobody has reset them.
    [{"read": A}, {"read": [30, 122880, [0] * 12 + [30]]}],
    # Fewer requests since than before.
    [{"read": A}, {"read": [5, 20480, [0] * 12 + [5]]}],
    # More requests since, and fewer bytes.
    [{"read": A}, {"read": [20, 10240, [0] * 12 + [20]]}],
    # More of both; others took longer.
    [{"read": A}, {"write": [20, 81920, [0] * 20 + [20]]}],
]
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen(16)
os.rename(sys.argv[1] + ".new", sys.argv[1])
for case in cases:
    for second, counted in enumerate(case):
        client = listener.accept()[0]
        assert json.loads(client.recv(4096)) == {"command": "stats"}
        stats = {op: {"count": c, "bytes": b, "errors": 0, "log2_ns": h} for op, (c, b, h) in counted.items()}
        answer = {"ok": True, "program": "rtrs-server", "pid": 1, "now_ns": second * 10**9, "sessions": [],
                  "exports": [{"name": "disk", "size": 1048576, "mode": "rw", "users": 0, "stats": stats}]}
        client.sendall(json.dumps(answer).encode() + b"\n")
        client.close()
END
/usr/bin/python3 "$tmp/program.py" "$tmp/ctl" &
program=$!
cleanup_fn stop_process $program
wait_until "the program" test -S "$tmp/ctl"

# IOPS, MB/s, p50 and p99.
rates() {
	"$top_builddir/rtrsctl" --socket="$tmp/ctl" status >"$tmp/status"
	cat "$tmp/status"
	got=$(awk \
		'$1 == "disk" { print $(NF - 6), $(NF - 5), $(NF - 4) $(NF - 3), $(NF - 2) $(NF - 1) }' "$tmp/status")
	[ "$got" = "$1" ] || fail "rates are '$got', expected: '$1'"
}
rates '20 0.1 6.1us 8.2us'
rates '5 0.0 6.1us 8.2us'
rates '20 0.0 6.1us 8.2us'
rates '20 0.1 1.6ms 2.1ms'
wait $program
