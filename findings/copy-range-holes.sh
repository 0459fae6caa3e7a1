#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: copy_file_range(2) is done by the kernel, which knows the holes of the source, so the copy is as sparse.
# Only a reflink is: on XFS and btrfs a copy of whole blocks.  On ext4 and tmpfs, and on all at other offsets, holes
# become blocks of zeroes (Linux 6.18): 8 sectors of data in 1 MiB are 2048 sectors in the copy.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

say "Linux $(uname -r)"
# sectors KIND OFFSET: of a file of 1 MiB with 4 KiB of data, and of its copy from this offset on
sectors() {
	python3 - "$tmp/$1" "$2" <<'END'
import os, sys
folder, offset = sys.argv[1], int(sys.argv[2])
source, copy = (os.open('%s/%s-%d' % (folder, name, offset), os.O_RDWR | os.O_CREAT) for name in ('source', 'copy'))
for fd in source, copy:
    os.ftruncate(fd, 1 << 20)
os.pwrite(source, b'x' * 4096, 1 << 19)
os.fsync(source)
while offset < 1 << 20:
    offset += os.copy_file_range(source, copy, (1 << 20) - offset, offset, offset)
os.fsync(copy)
print(os.fstat(source).st_blocks, os.fstat(copy).st_blocks)
END
}
for kind in ext4 xfs btrfs tmpfs; do
	filesystem $kind
	case $kind in
	xfs | btrfs) expect "$kind, whole blocks" "$(sectors $kind 0)" "8 8" ;;
	*) expect "$kind, whole blocks" "$(sectors $kind 0)" "8 2048" ;;
	esac
	expect "$kind, from byte 100 on" "$(sectors $kind 100)" "8 2048"
done
