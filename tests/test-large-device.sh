#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Offsets above 4 GiB, and a zero request of nearly 4 GiB.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

truncate -s 6T "$tmp/disk" || skip "the file system of $tmp has no files of 6 TiB"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export file=$tmp/disk
nbdsh_run "$uri" <<'END'
import os

T = 1 << 40
assert h.get_size() == 6 * T
places = [0, (1 << 32) - 512, (1 << 32) - 1, (1 << 41) - 100, 5 * T + 12345, 6 * T - 4096, 6 * T - 700]
for i, at in enumerate(places):
    h.pwrite(bytes([i + 1]) * 600, at)
with open(os.environ["file"], "rb") as f:
    for i, at in enumerate(places):
        f.seek(at)
        want = f.read(600)
        assert h.pread(600, at) == want, at
        # The next place overwrites a part of the one at 2^32 - 512.
        assert want[-1] == i + 1 if i != 1 else want[0] == 2, (i, want)
h.trim((1 << 32) - 512, 0)
assert h.pread(512, (1 << 32) - 1024) == bytes(512)
assert h.pread(511, (1 << 32) - 512) == b"\2" * 511
END
