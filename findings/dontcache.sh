#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: RWF_DONTCACHE, cached IO that leaves nothing in the page cache, works wherever there is a page cache, and
# first of all on block devices.  Single file systems have it (Linux 6.18): ext4 and XFS.  Block devices, btrfs and
# tmpfs answer EOPNOTSUPP to reads and writes.  So a server of logical volumes does not get it from a newer kernel.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

say "Linux $(uname -r)"
# seen FILE
seen() {
	python3 - "$1" <<'END'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
dontcache = 0x80
for call, data in (os.pwritev, b'x' * 4096), (os.preadv, bytearray(4096)):
    try:
        print(call(fd, [data], 0, dontcache), end=' ')
    except OSError as e:
        print('EOPNOTSUPP' if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno], end=' ')
END
}
for kind in ext4 xfs; do
	filesystem $kind
	expect "$kind" "$(seen "$tmp/$kind/file")" "4096 4096 "
done
for kind in btrfs tmpfs; do
	filesystem $kind
	expect "$kind" "$(seen "$tmp/$kind/file")" "EOPNOTSUPP EOPNOTSUPP "
done
truncate -s 1M "$tmp/image"
loop_of "$tmp/image"
expect "a block device" "$(seen "$loop")" "EOPNOTSUPP EOPNOTSUPP "
