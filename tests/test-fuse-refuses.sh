#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Flags are not taken at their word: where ZERO_RANGE is EINVAL, zeroes are written; so are those of
# a part of a block, which fuse2fs says to have punched; and a file system that takes small O_DIRECT
# reads alone is refused with ",direct", and served without.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_gateway; requires_root
requires nbdsh --version

hole_fs 4194304 refuses

expect_failure 1 "cannot be read with O_DIRECT: remove ',direct'" \
	timeout "$TIMEOUT_S" "$RTRS_SERVER" --strict --listen "unix:$tmp/s" \
	"disk=$tmp/mnt/disk,direct"

start_server "disk=$tmp/mnt/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk
nbdsh_run "$uri" <<-'PY'
h.pwrite(b"x" * 65536, 0)
h.zero(4096, 8192, nbd.CMD_FLAG_NO_HOLE)
h.zero(4096, 16384)
got = bytes(h.pread(65536, 0))
want = bytearray(b"x" * 65536)
want[8192:12288] = want[16384:20480] = bytes(4096)
assert got == want
h.zero(512, 24576)
h.zero(4608, 28672)
PY
grep '^fallocate 17$' "$tmp/fuse.log"
grep '^fallocate 3$' "$tmp/fuse.log"
# The page cache has zeroes in any case.
/usr/bin/python3 - "$tmp/mnt/disk" <<-'PY'
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
stored = b""
for off in range(0, 65536, 4096):
    os.preadv(fd, [page], off)
    stored += bytes(page)
want = bytearray(b"x" * 65536)
for off, n in (8192, 4096), (16384, 4096), (24576, 512), (28672, 4608):
    want[off:off + n] = bytes(n)
assert stored == want
PY
