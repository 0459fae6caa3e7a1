#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the document of NBD says of errors and extents where a good guess of a client's author is
# another one (nbd-document.py); of options and ends: unit/test-nbd-opt.c, test-nbd-server.c.
. ./tests/functions.sh
requires_server; requires_gateway
requires /usr/bin/python3 --version
requires nbdsh -c True

truncate -s 6T "$tmp/disk" || skip "no sparse file of 6 TiB in $tmp"
dd if=/dev/urandom of="$tmp/disk" bs=1M count=1 seek=2M conv=notrunc status=none
start_server "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk

TIMEOUT_S=$TIMEOUT_S timeout $((6 * TIMEOUT_S)) \
	/usr/bin/python3 "$top_srcdir/tests/nbd-document.py" "$sock"

# While rtrs-nbd stops, a reply that would need another question of the server ends with what is
# known.
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/ctl" heartbeat=30000
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/ctl")
mkfifo "$tmp/go"
timeout $((2 * TIMEOUT_S)) nbdsh --base-allocation -u "$uri" -c '
import sys
print("ready", flush=True)
sys.stdin.readline()
h.block_status(0xfffff000, 0, lambda context, off, extents, error: print("extents", extents))
' <"$tmp/go" >"$tmp/short.log" 2>&1 &
client_pid=$!
exec 8>"$tmp/go"
wait_line "$tmp/short.log" ready
stop_all_threads "$server_pid"
echo go >&8
in_flight() { "${ctl[@]}" --json clients | grep -q '"inflight":1'; }
wait_until "a request in flight" in_flight
kill -TERM "$gateway_pid"
ends() { { "${ctl[@]}" clients 2>&1 || true; } | grep -q 'serves no NBD clients now'; }
wait_until "the end to begin" ends
kill -CONT "$server_pid"
expect_exit "$gateway_pid" 0
expect_exit "$client_pid" 0
exec 8>&-
cat "$tmp/short.log"
grep -q '^extents \[2147483648, 3\]' "$tmp/short.log" ||
	fail "the reply is not the first answer of the server"
