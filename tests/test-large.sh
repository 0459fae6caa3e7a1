#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The largest requests NBD clients send: 64 MiB, split over the wire, aligned and not, in parallel.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

# TSan takes minutes for as many bytes, because it looks at each word that arrives: a sixteenth of
# all.
M=$((1 << 20))
case $SANITIZERS in *thread*) M=$((1 << 16)) ;; esac
export M
truncate -s $((200 * M)) "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export file=$tmp/disk
nbdsh_run "$uri" <<'END'
import os

M = int(os.environ["M"])
a, b = os.urandom(64 * M), os.urandom(64 * M)

h.pwrite(a, 0)
assert h.pread(64 * M, 0) == a
h.pwrite(b, 100 * M + 3, nbd.CMD_FLAG_FUA)
assert h.pread(64 * M, 100 * M + 3) == b
assert h.pread(3, 100 * M) == bytes(3)

# Four at once: more parts than there are permits.
bufs = [nbd.Buffer(48 * M) for _ in range(4)]
todo = [h.aio_pread(buf, 1000 * i) for i, buf in enumerate(bufs)]
while todo:
    todo = [c for c in todo if not h.aio_command_completed(c)]
    if todo:
        h.poll(-1)
for i, buf in enumerate(bufs):
    assert buf.to_bytearray() == a[1000 * i:1000 * i + 48 * M], i

# Zero and trim carry no data: their length is bounded by 32 bits only.
h.zero(200 * M, 0, nbd.CMD_FLAG_NO_HOLE)
assert h.pread(64 * M, 0) == bytes(64 * M)
h.pwrite(a, 10 * M)
h.trim(200 * M, 0, nbd.CMD_FLAG_FUA)
assert h.pread(64 * M, 10 * M) == bytes(64 * M)
END
