#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit is stopped (SIGTERM) while requests wait, for ever as they were told, for a server that is
# away or that came back without the export: they fail, and nbdkit ends.  So does an export that is
# being opened.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
# What nbdkit keeps of connections that it had when it was stopped is its own leak.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk" "two=$tmp/disk,readonly"
port=$server_port

# A client in each state: with requests in flight, and one that connects.
mkfifo "$tmp/connected" "$tmp/away"
client() {
	tmp=$tmp nbdsh_run "nbd+unix:///disk?socket=$sock" <<'END'
import os

h.pwrite(b"a" * 512, 0)
with open(os.environ["tmp"] + "/connected", "w") as f:
    f.write("connected\n")
with open(os.environ["tmp"] + "/away") as f:
    assert f.readline() == "away\n"
must_fail(lambda: h.pread(512, 0), "EIO", "answered by nobody")
END
}
read_begun() { grep -q 'debug: rtrs: pread' "$nbdkit_log"; }

start_nbdkit -v "server=127.0.0.1:$port" io-timeout=forever
client &
reader=$!
read -r -t "$TIMEOUT_S" word <"$tmp/connected"
[ "$word" = connected ]
kill_process "$server_pid"
wait_line "$nbdkit_log" 'lost: .*reconnecting'
echo away >"$tmp/away"
wait_until "a request" read_begun
must_fail timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///two?socket=$sock" &
opener=$!
opens() { [ "$(grep -c 'debug: rtrs: open' "$nbdkit_log")" -ge 2 ]; }
wait_until "an open" opens
kill -TERM "$nbdkit_pid"
expect_exit $reader 0
expect_exit $opener 0
stop_process "$nbdkit_pid"

start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
start_nbdkit -v "server=127.0.0.1:$port" io-timeout=forever
client &
reader=$!
read -r -t "$TIMEOUT_S" word <"$tmp/connected"
[ "$word" = connected ]
kill_process "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "other=$tmp/disk"
wait_line "$nbdkit_log" 'disk: cannot be opened again'
echo away >"$tmp/away"
wait_until "a request" read_begun
kill -TERM "$nbdkit_pid"
expect_exit $reader 0
stop_process "$nbdkit_pid"
