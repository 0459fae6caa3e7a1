#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every operation and flag of NBD has its effect on the file, no more and no less.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

random_file "$tmp/disk" $((16 << 20))
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export file=$tmp/disk
nbdsh_run "$uri" <<'END'
import os

M = 1 << 20
model = bytearray(open(os.environ["file"], "rb").read())

def same(what):
    """The file, and what the export reads as, are what the model says."""
    with open(os.environ["file"], "rb") as f:
        assert f.read() == model, what + ": the file differs"
    assert h.pread(len(model), 0) == model, what + ": pread differs"

def write(offset, data, flags):
    h.pwrite(data, offset, flags)
    model[offset:offset + len(data)] = data

def zero(offset, n, flags):
    h.zero(n, offset, flags)
    model[offset:offset + n] = bytes(n)

def allocated(offset, n):
    """True if all of the range has blocks, False if none, None for a mix."""
    fd = os.open(os.environ["file"], os.O_RDONLY)
    try:
        hole = os.lseek(fd, offset, os.SEEK_HOLE)
        if hole >= offset + n:
            return True
        try:
            data = os.lseek(fd, offset, os.SEEK_DATA)
        except OSError:
            return False		# no data behind
        return False if data >= offset + n else None
    finally:
        os.close(fd)

assert h.get_size() == len(model)
same("start")
write(0, os.urandom(4096), 0)
write(M + 512, os.urandom(512), 0)
same("pwrite")
write(2 * M, os.urandom(65536), nbd.CMD_FLAG_FUA)
write(2 * M + 513, os.urandom(1000), nbd.CMD_FLAG_FUA)
same("pwrite FUA")
h.flush()

# A zero that may not punch keeps the blocks, so that a later write cannot run out of space.
zero(4 * M, M, nbd.CMD_FLAG_NO_HOLE)
same("zero NO_HOLE")
zero(6 * M, M, 0)
same("zero")
zero(8 * M + 100, 5000, 0)
same("zero unaligned")
zero(9 * M, 4096, nbd.CMD_FLAG_FUA)
zero(9 * M + 1, 4096, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
same("zero FUA")
# Fast zero: done at once, or refused with ENOTSUP and nothing changed.
assert h.can_fast_zero() in (True, False)
if h.can_fast_zero():
    try:
        zero(10 * M, M, nbd.CMD_FLAG_FAST_ZERO)
    except nbd.Error as e:
        assert e.errno == "ENOTSUP", e
    same("fast zero")
    try:
        zero(11 * M + 7, 777, nbd.CMD_FLAG_FAST_ZERO)
    except nbd.Error as e:
        assert e.errno == "ENOTSUP", e
    same("fast zero unaligned")

# Trim may do nothing; on a file it punches what is whole blocks, and never touches the rest.
h.trim(M, 12 * M, nbd.CMD_FLAG_FUA)
model[12 * M:13 * M] = bytes(M)
same("trim")
h.trim(100, 13 * M + 17)
got = h.pread(4096, 13 * M)
want = model[13 * M:13 * M + 4096]
assert got[:17] == want[:17] and got[117:] == want[117:], "trim touched its neighbours"
assert got[17:117] in (want[17:117], bytes(100)), "trim left neither zeroes nor the old data"
model[13 * M:13 * M + 4096] = got

h.cache(M, 0)
h.cache(1, 1)
same("cache")
h.flush()

if allocated(0, 4096) is True:
    assert allocated(4 * M, M) is True, "zero NO_HOLE punched a hole"
    assert allocated(12 * M, M) is False, "trim punched no hole"

sizes = [h.get_block_size(t) for t in (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED, nbd.SIZE_MAXIMUM)]
assert sizes[0] == 1, sizes
assert sizes[1] >= 4096 and sizes[1] & (sizes[1] - 1) == 0, sizes
assert sizes[2] >= 32 * M, sizes
END
