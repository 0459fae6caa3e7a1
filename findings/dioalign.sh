#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: statx(STATX_DIOALIGN) says whether a file takes O_DIRECT, and its numbers are constants of the file system.
# btrfs and tmpfs report nothing, and take O_DIRECT (Linux 6.18).  On XFS the numbers of an open file change: the
# first "cp --reflink" of it raises that of offsets from 512 to 4096, which stays when the copy is gone and all is
# written again.  Writes of 512 bytes succeed all the same.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

cat >"$tmp/statx.py" <<'END'
import ctypes, mmap, os, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
data = mmap.mmap(-1, 65536)
os.pwritev(fd, [data], 0)


def align():
    """stx_dio_mem_align and stx_dio_offset_align"""
    statx, at_empty_path, dioalign = ctypes.create_string_buffer(256), 0x1000, 0x2000
    assert not libc.statx(fd, b'', at_empty_path, dioalign, statx)
    if not struct.unpack_from('I', statx)[0] & dioalign:
        return 'unknown'
    return '%d %d' % struct.unpack_from('II', statx, 0x98)


print(align(), end='')
if sys.argv[2:] == ['reflink']:
    subprocess.run(['cp', '--reflink=always', path, path + '-copy'], check=True)
    print(', copied: %s, write of 512: %d' % (align(), os.pwritev(fd, [memoryview(data)[:512]], 512)), end='')
    os.unlink(path + '-copy')
    os.pwritev(fd, [data], 0)
    os.fsync(fd)
    print(', copy removed: %s' % align(), end='')
END
say "Linux $(uname -r)"
for kind in ext4 xfs btrfs tmpfs; do filesystem $kind; done
expect "ext4" "$(python3 "$tmp/statx.py" "$tmp/ext4/file")" "512 512"
for kind in btrfs tmpfs; do
	expect "$kind" "$(python3 "$tmp/statx.py" "$tmp/$kind/file")" "unknown"
done
expect "XFS" "$(python3 "$tmp/statx.py" "$tmp/xfs/file" reflink)" \
	"512 512, copied: 512 4096, write of 512: 512, copy removed: 512 4096"
