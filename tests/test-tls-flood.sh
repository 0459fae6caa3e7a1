#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 12,000 handshakes of TLS a minute, every other one with a wrong key, and 200 that stall, hold up
# neither IO, heartbeats nor honest handshakes.
. ./tests/functions.sh
requires_server; requires_plain_build
requires /usr/bin/python3 --version

umask 077
"$top_builddir/rtrs-psk" honest >"$tmp/good.psk"
"$top_builddir/rtrs-psk" honest >"$tmp/wrong.psk"
random_file "$tmp/disk" $((8 << 20))
start_server --tls=require --tls-psk="$tmp/good.psk" --heartbeat=500 --control none "disk=$tmp/disk"
# A silent client: its path lives on heartbeats.
requires_plugin
start_nbdkit "server=127.0.0.1:$server_port" export=disk control=none mode=ro heartbeat=500 \
	tls=require tls-psk="$tmp/good.psk"

seconds=10
"$top_builddir/rtrs-bench" --json --tls-psk="$tmp/good.psk" --runtime=$((seconds + 2)) \
	"127.0.0.1:$server_port" disk >"$tmp/bench.json" &
bench=$!
timeout "$TIMEOUT_S" "$top_builddir/tls-flood" "$server_port" "$tmp"/{good,wrong}.psk 200 $seconds |
	tee "$tmp/flood.out"
wait "$bench"
cat "$tmp/bench.json"
# Each had the outcome of its key, in time.
words='s/^([0-9]+) good, ([0-9]+) refused, 0 astray, slowest ([0-9]+) ms$/\1 \2 \3/p'
read -r good refused slowest < <(sed -n -E "$words" "$tmp/flood.out")
[ "$good" -eq $((200 * seconds / 2)) ]
[ "$refused" -eq $((200 * seconds / 2)) ]
[ "$slowest" -lt 3000 ] || fail "a handshake took $slowest ms"
/usr/bin/python3 - "$tmp/bench.json" <<'END'
import json, sys
read = json.load(open(sys.argv[1]))["read"]
assert read["ios"] > 1000 and read["max_ns"] < 2e9, read
END
# The stalled ones go after ten seconds; nobody else has.
must_fail grep -q -E 'path down: .*(heartbeat|silent)' "$server_log"
must_fail grep -q -E 'path (down|lost)' "$nbdkit_log"
