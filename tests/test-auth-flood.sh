#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 4,096 complete authentications in messages, as fast as 16 clients at once make them, hold up
# neither IO, heartbeats nor commands of rtrsctl.
. ./tests/functions.sh
requires_server; requires_plugin; requires_plain_build
requires /usr/bin/python3 --version

umask 077
"$top_builddir/rtrs-psk" honest >"$tmp/good.psk"
random_file "$tmp/disk" $((8 << 20))
start_server --auth=require --auth-psk="$tmp/good.psk" --heartbeat=500 --control "$tmp/control" \
	"disk=$tmp/disk"
# A silent client: its path lives on heartbeats.
start_nbdkit "server=127.0.0.1:$server_port" export=disk control=none mode=ro heartbeat=500 \
	auth-psk="$tmp/good.psk"
"$top_builddir/rtrs-bench" --json --auth-psk="$tmp/good.psk" --runtime=60 \
	"127.0.0.1:$server_port" disk >"$tmp/bench.json" &
bench=$!
cleanup_fn stop_process $bench
# Ask the control thread all the time, and tell how long the longest answer took.
cat >"$tmp/ask.py" <<'END'
import json, os, socket, sys, time
slowest = n = 0
worst_ns = 0
while not os.path.exists(sys.argv[2]):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    begun = time.monotonic()
    s.sendall(b'{"command": "show"}\n')
    answer = b""
    while not answer.endswith(b"\n"):
        answer += s.recv(65536)
    slowest = max(slowest, time.monotonic() - begun)
    for session in json.loads(answer)["sessions"]:
        worst_ns = max([worst_ns] + [p["latency_ns"] for p in session["paths"]])
    s.close()
    n += 1
    time.sleep(0.005)
print(n, int(1e6 * slowest), worst_ns // 1000)
END
/usr/bin/python3 "$tmp/ask.py" "$tmp/control" "$tmp/over" >"$tmp/asked" &
ask=$!
# A host has 64 guests: these, those that have closed and the server has not seen it, and the bench.
timeout $((4 * TIMEOUT_S)) "$top_builddir/auth-flood" "$server_port" "$tmp/good.psk" 16 256 |
	tee "$tmp/flood"
: >"$tmp/over"
wait $ask
kill -INT $bench
wait $bench || true		# it was interrupted
cat "$tmp/bench.json"
read -r asked slowest_us heartbeat_us <"$tmp/asked"
echo "$asked questions, slowest answer $slowest_us us, slowest heartbeat $heartbeat_us us"
grep -E '^4096 proven in [0-9]+ ms, slowest [0-9]+ ms$' "$tmp/flood"
[ "$asked" -gt 10 ]
must_fail grep -q -E 'path down: .*(heartbeat|silent)' "$server_log"
must_fail grep -q -E 'path (down|lost)' "$nbdkit_log"
