#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: preadv2(RWF_NOWAIT) of data that is not cached does nothing but say EAGAIN, so it is a free test of the
# cache, and the data stays out of the cache until somebody reads.  The call starts the read (Linux 6.18; ext4, XFS
# and btrfs): with no other reader the same call succeeds a moment later.  So a test of many ranges reads all of them,
# and evicts what was cached.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

say "Linux $(uname -r)"
for kind in ext4 xfs btrfs; do
	filesystem $kind
	expect "$kind" "$(python3 - "$tmp/$kind/file" <<'END'
import errno, os, sys, time
with open(sys.argv[1], 'wb') as f:
    f.write(os.urandom(1 << 20))
    f.flush()
    os.fsync(f.fileno())
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
fd = os.open(sys.argv[1], os.O_RDONLY)


def read(offset):
    try:
        return str(os.preadv(fd, [bytearray(65536)], offset, os.RWF_NOWAIT))
    except OSError as e:
        return errno.errorcode[e.errno]


first, end = read(0), time.monotonic() + 10
while (again := read(0)) == 'EAGAIN' and time.monotonic() < end:
    time.sleep(0.01)
print('first %s, later %s' % (first, again))
END
	)" "first EAGAIN, later 65536"
done
