# SPDX-License-Identifier: BSD-3-Clause
# Each operation of NBD once, for nbdsh; $uri is an export whose first 48 MiB are a hole.
# What was written is read back by a second connection.
import os
M = 1 << 20


def connect():
    c = nbd.NBD()
    c.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    c.connect_uri(os.environ["uri"])
    return c


def extents(c, n, off):
    got = []
    c.block_status(n, off, lambda metacontext, offset, e, err: got.extend(e) and 0 or 0)
    return list(zip(got[::2], got[1::2]))


h, other = connect(), connect()
for can in h.can_flush, h.can_fua, h.can_trim, h.can_zero, h.can_multi_conn:
    assert can(), can
data = os.urandom(M)
h.pwrite(data, 3 * M)
h.flush()
h.pwrite(data[:4096], 8 * M, nbd.CMD_FLAG_FUA)
h.pwrite(data[:1001], 9 * M + 77)
assert other.pread(M, 3 * M) == data
assert other.pread(4096, 8 * M) == data[:4096]
assert other.pread(1001, 9 * M + 77) == data[:1001]
assert other.pread(4096, 20 * M) == bytes(4096)
assert extents(h, M, 3 * M) == [(M, 0)]
assert extents(h, 4 * M, 30 * M) == [(4 * M, 3)]
h.trim(M // 2, 3 * M)
assert other.pread(M, 3 * M) == bytes(M // 2) + data[M // 2:]
assert extents(other, M, 3 * M) == [(M // 2, 3), (M // 2, 0)]
h.zero(M // 4, 3 * M + M // 2)
h.zero(M // 4, 3 * M + M * 3 // 4, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert other.pread(M, 3 * M) == bytes(M)
