#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a write with RWF_NOWAIT to blocks that are allocated succeeds, since nothing has to be waited for, and an
# io_uring needs no worker for it.  On XFS the change of mtime has to wait (Linux 6.18): such a write is EAGAIN unless
# another write has moved mtime within the same tick of the clock.  So writes some milliseconds apart never succeed,
# cached or with O_DIRECT. ext4 and block devices take them with O_DIRECT alone, tmpfs never.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

for kind in ext4 xfs tmpfs; do filesystem $kind; done
truncate -s 1M "$tmp/image"
loop_of "$tmp/image"
say "Linux $(uname -r)"

# seen FILE FLAG: of 20 writes to allocated blocks, 20 ms apart, and of pairs: a write, and one with RWF_NOWAIT
seen() {
	python3 - "$1" "$2" <<'END'
import errno, mmap, os, sys, time
data = mmap.mmap(-1, 4096)
data.write(b'x' * 4096)
path, flag = sys.argv[1], getattr(os, sys.argv[2])
with open(os.open(path, os.O_WRONLY | os.O_CREAT), 'wb') as f:
    f.write(b'x' * 65536)
    f.flush()
    os.fsync(f.fileno())
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
fd = os.open(path, os.O_RDWR | flag)
flag or os.pread(fd, 65536, 0)


def call(f):
    try:
        return 'ok' if f(fd, [data], 0, os.RWF_NOWAIT) == 4096 else 'short'
    except OSError as e:
        return 'EOPNOTSUPP' if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno]


def paused():
    time.sleep(0.02)
    return call(os.pwritev)


def pair():
    os.pwritev(fd, [data], 0)
    return call(os.pwritev)


print('paused:', *sorted({paused() for _ in range(20)}), end='; ')
print('one of the pairs:', 'ok' if any(pair() == 'ok' for _ in range(4000)) else 'none')
END
}
expect "ext4, cached" "$(seen "$tmp/ext4/file" O_CLOEXEC)" "paused: EOPNOTSUPP; one of the pairs: none"
expect "ext4, direct" "$(seen "$tmp/ext4/file" O_DIRECT)" "paused: ok; one of the pairs: ok"
expect "XFS, cached" "$(seen "$tmp/xfs/file" O_CLOEXEC)" "paused: EAGAIN; one of the pairs: ok"
expect "XFS, direct" "$(seen "$tmp/xfs/file" O_DIRECT)" "paused: EAGAIN; one of the pairs: ok"
expect "tmpfs" "$(seen "$tmp/tmpfs/file" O_CLOEXEC)" "paused: EOPNOTSUPP; one of the pairs: none"
expect "block device, cached" "$(seen "$loop" O_CLOEXEC)" "paused: EOPNOTSUPP; one of the pairs: none"
expect "block device, direct" "$(seen "$loop" O_DIRECT)" "paused: ok; one of the pairs: ok"
