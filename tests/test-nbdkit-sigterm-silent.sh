#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit is stopped (SIGTERM) while a request is in flight to a server that stands still: it does
# not wait for all heartbeats (35 s with those of RDMA), although its requests would wait for ever.
# The request fails; what was answered before is there.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires nbdsh --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit -v "server=127.0.0.1:$server_port" export=disk io-timeout=forever heartbeat=5000 \
	heartbeat-misses=5
mkfifo "$tmp/connected" "$tmp/still"
tmp=$tmp nbdsh_run "$uri" <<'END' &
import os

h.pwrite(b"a" * 512, 0)
with open(os.environ["tmp"] + "/connected", "w") as f:
    f.write("connected\n")
with open(os.environ["tmp"] + "/still") as f:
    assert f.readline() == "still\n"
must_fail(lambda: h.pwrite(b"b" * 512, 512), "EIO", "answered by nobody")
END
client=$!
read -r -t "$TIMEOUT_S" word <"$tmp/connected"
[ "$word" = connected ]
stop_all_threads "$server_pid"
echo still >"$tmp/still"
writes() { [ "$(grep -c 'debug: rtrs: pwrite' "$nbdkit_log")" -ge 2 ]; }
wait_until "a request" writes
start=$SECONDS
kill -TERM "$nbdkit_pid"
expect_exit $client 0
stop_process "$nbdkit_pid"
took=$((SECONDS - start))
# Two heartbeats, and as much again for a busy machine.
[ $took -lt 20 ] || fail "nbdkit took $took s"
grep 'no sign of life for 5 s, and no request waits any longer' "$nbdkit_log"
kill -CONT "$server_pid"
[ "$(head -c 512 "$tmp/disk" | tr -d a | wc -c)" = 0 ]
