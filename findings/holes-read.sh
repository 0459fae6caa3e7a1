#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: reading a file changes nothing of where its data and holes are.  A preallocated range (fallocate) is a hole
# for SEEK_HOLE, but on ext4 and XFS a read makes it data, for as long as its zeroes are in the page cache (Linux
# 6.18).  So after a checksum of a preallocated image all of it is data, and the next sparse copy copies all.  btrfs
# and tmpfs keep the hole, and so does a read with O_DIRECT.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

for kind in ext4 xfs btrfs tmpfs; do filesystem $kind; done
say "Linux $(uname -r)"

# data KIND: the ranges of data of 1 MiB that was preallocated, that was read, and whose cache was dropped then
data() {
	python3 - "$tmp/$1/file" <<'END'
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.posix_fallocate(fd, 0, 1 << 20)


def data():
    ranges, at = [], 0
    while at < 1 << 20:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        at = os.lseek(fd, start, os.SEEK_HOLE)
        ranges.append('%d-%d' % (start, at))
    return ' '.join(ranges) or 'none'


before = data()
direct = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
os.preadv(direct, [mmap.mmap(-1, 65536)], 0)
print('%s, read direct: %s' % (before, data()), end=', ')
os.pread(fd, 65536, 65536)
print('read: %s' % data(), end=', ')
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
print('dropped: %s' % data())
END
}
for kind in ext4 xfs; do
	expect "$kind" "$(data $kind)" "none, read direct: none, read: 65536-131072, dropped: none"
done
for kind in btrfs tmpfs; do
	expect "$kind" "$(data $kind)" "none, read direct: none, read: none, dropped: none"
done
