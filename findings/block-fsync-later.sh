#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: the error of a write-back is for descriptors that were open then, each one once, and one opened later starts
# clean.  If nobody has asked yet, the first fsync of a descriptor opened later is EIO, too (Linux 6.18), even if all
# others were closed without an fsync: a program that never wrote fails for one that has ended.  A read-only
# descriptor takes part.  Afterwards the page cache has what the device has not: cached reads return the lost data,
# direct ones the old data.  Here: a loop device over a full tmpfs.
# Needs root, tmpfs and a loop device; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

filesystem tmpfs
truncate -s 128M "$tmp/tmpfs/image"
loop_of "$tmp/tmpfs/image"
head -c 128M /dev/zero >"$tmp/tmpfs/ballast" 2>/dev/null || true
say "Linux $(uname -r)"

expect "fsync and reads" "$(python3 - "$loop" <<'END'
import errno, mmap, os, sys


def fsync(fd):
    try:
        os.fsync(fd)
        return 'ok'
    except OSError as e:
        return errno.errorcode[e.errno]


def opened(flags=os.O_RDWR):
    return os.open(sys.argv[1], flags)


writer, reader = opened(), opened(os.O_RDONLY)
os.pwrite(writer, b'x' * 65536, 8 << 20)
os.sync()
later = opened()
print('later: %s, reader: %s, writer: %s %s' % (fsync(later), fsync(reader), fsync(writer), fsync(writer)))
print('opened after those: %s' % fsync(opened()))
data = mmap.mmap(-1, 65536)
os.preadv(opened(os.O_RDONLY | os.O_DIRECT), [data], 8 << 20)
print('cached: %s, direct: %s' % (os.pread(reader, 1, 8 << 20), data[:1]))
os.pwrite(writer, b'x' * 65536, 9 << 20)
os.sync()
os.closerange(3, 100)
print('all closed, another one: %s' % fsync(opened()))
END
)" "later: EIO, reader: EIO, writer: EIO ok
opened after those: ok
cached: b'x', direct: b'\\x00'
all closed, another one: EIO"
