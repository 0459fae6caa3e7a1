#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The server comes back with a smaller device while a client that writes bytes is connected:
# what lies beyond the new end fails with an error, in whatever way it is unaligned, and changes
# nothing; what lies inside works.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

# 512 above a multiple of 4096.
small=$(((64 << 10) + 512))
random_file "$tmp/disk" 1M
start_server "disk=$tmp/disk"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$TIMEOUT_S"

mkfifo "$tmp/connected" "$tmp/restarted"
export tmp small
nbdsh_run "$uri" <<'END' &
import os

h.set_strict_mode(0)
size = int(os.environ["small"])
file = os.environ["tmp"] + "/disk"
assert h.get_size() == 1 << 20
h.pwrite(b"x", (1 << 20) - 1)
h.flush()
open(os.environ["tmp"] + "/connected", "w").close()
open(os.environ["tmp"] + "/restarted").close()

def refused(what, call):
    try:
        call()
    except nbd.Error as e:
        # ENOSPC is what the server says to a write that is aligned.
        assert e.errno in ("EIO", "ENOSPC", "EINVAL"), (what, e)
    else:
        raise SystemExit("%s beyond the end succeeded" % (what,))

with open(file, "rb") as f:
    before = f.read()
assert len(before) == size
assert h.pread(size, 0) == before
for offset in (size - 513, size - 1, size, size + 1, size + 511, size + 512, size + 513,
               size + 4096, size + 5000, (1 << 20) - 5000):
    for n in (1, 2, 511, 512, 513, 1000, 5000):
        if offset + n <= size:
            continue
        where = (offset, n)
        refused(("pread", where), lambda: h.pread(n, offset))
        refused(("pwrite", where), lambda: h.pwrite(b"x" * n, offset))
        refused(("pwrite fua", where), lambda: h.pwrite(b"x" * n, offset, nbd.CMD_FLAG_FUA))
        refused(("zero", where), lambda: h.zero(n, offset))
with open(file, "rb") as f:
    after = f.read()
assert len(after) == size
# A request that begins inside has written the blocks that it covers, or none.
assert after[:size - 513] == before[:size - 513]

for n in (1, 511, 513, 1000):
    data = bytes([n % 251]) * n
    h.pwrite(data, size - n)
    assert h.pread(n, size - n) == data
h.flush()
END
client=$!
timeout "$TIMEOUT_S" cat "$tmp/connected"
stop_server "$server_pid"
truncate -s "$small" "$tmp/disk"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
timeout "$TIMEOUT_S" sh -c ": >'$tmp/restarted'"
expect_exit $client 0
[ "$(stat -c %s "$tmp/disk")" -eq "$small" ]
