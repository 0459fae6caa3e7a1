#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The server is away for longer than io-timeout: requests fail with EIO, in time; when it is back
# everything works again without a new NBD connection.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

random_file "$tmp/disk" $((1 << 20))
start_server "disk=$tmp/disk"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk io-timeout=2

export server_pid marker=$tmp/marker
mkfifo "$tmp/marker"
nbdsh_run "$uri" >"$tmp/nbdsh.log" 2>&1 <<'END' &
import os, select, signal, time

first = h.pread(4096, 0)
server = os.pidfd_open(int(os.environ["server_pid"]))
signal.pidfd_send_signal(server, signal.SIGKILL)
select.select([server], [], [])		# its last thread has ended
start = time.monotonic()
for call in (lambda: h.pread(4096, 0), lambda: h.pwrite(b"x" * 512, 8192), lambda: h.flush()):
    must_fail(call, "EIO", "succeeded without a server")
took = time.monotonic() - start
# Three in a row, each at most io-timeout and some more; the first not before its time.
assert took > 1, took
assert took < 20, took
with open(os.environ["marker"], "w") as f:
    f.write("failed\n")
with open(os.environ["marker"]) as f:
    f.readline()	# the server is back
deadline = time.monotonic() + 30
while True:
    try:
        assert h.pread(4096, 0) == first
        break
    except nbd.Error as e:
        assert e.errno == "EIO" and time.monotonic() < deadline, e
h.pwrite(b"y" * 512, 8192)
assert h.pread(512, 8192) == b"y" * 512
END
client=$!
read -r -t $((2 * TIMEOUT_S)) word <"$tmp/marker"
[ "$word" = failed ]
kill_process "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
echo back >"$tmp/marker"
expect_exit $client 0
