#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit is stopped (SIGTERM) while the storage of a server that lives holds a request: the request
# fails within the bound of all programs, and nbdkit ends, while the storage still holds it.  What
# was answered before is there.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires_plain_build
requires nbdsh --version

truncate -s 1M "$tmp/image"
mkfifo "$tmp/held" "$tmp/ended"
held_fs "$tmp/image"

start_server "disk=$tmp/mnt/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk io-timeout=forever
tmp=$tmp nbdsh_run "$uri" <<'END' &
import os, socket

h.pwrite(b"a" * 512, 0)
holder = socket.socket(socket.AF_UNIX)
holder.connect(os.environ["tmp"] + "/held.sock")
assert holder.recv(1) == b"H"
write = h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b"b" * 512)), 512)
h.poll(0)
assert holder.recv(1) == b"W"
with open(os.environ["tmp"] + "/held", "w") as f:
    f.write("held\n")
try:
    while not h.aio_command_completed(write):
        h.poll(-1)
except nbd.Error as e:
    assert e.errno == "EIO", e
else:
    raise SystemExit("answered by nobody")
h.shutdown()
with open(os.environ["tmp"] + "/ended") as f:
    assert f.readline() == "ended\n"
END
client=$!
read -r -t "$TIMEOUT_S" word <"$tmp/held"
[ "$word" = held ]
# Requests have 45 s from when nbdkit's end is heard.
TIMEOUT_S=$((TIMEOUT_S + 60)) stop_process "$nbdkit_pid"
grep 'requests are still in flight at the end' "$nbdkit_log"
must_fail grep 'no sign of life' "$nbdkit_log"
echo ended >"$tmp/ended"
expect_exit $client 0
stop_server "$server_pid"
[ "$(head -c 512 "$tmp/image" | tr -d a | wc -c)" = 0 ]
