#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: the mapping of a file is memory as any other, so an io_uring may have it as a registered buffer, for copies
# without a buffer between.  A shared mapping of a file on ext4, XFS or btrfs, or of a block device, is EFAULT, "Bad
# address" (Linux 6.18): memory is pinned for writing, and pages of a file that has to be told of writes may not be
# pinned for long.  A read into the same mapping without registration succeeds, with O_DIRECT, too.  tmpfs is
# registered, and a private mapping, which is a copy.  A mapping that is only to be read is EFAULT even of tmpfs, although
# it would only be sent.
# Needs root, loop devices and mkfs of each; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

for kind in ext4 xfs btrfs tmpfs; do filesystem $kind; done
truncate -s 1M "$tmp/source" "$tmp/image"
loop_of "$tmp/image"
say "Linux $(uname -r)"
cat >"$tmp/program" <<'END'
import ctypes, errno, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
SETUP, REGISTER = 425, 427      # the system calls of io_uring, the same on all processors
ring = libc.syscall(SETUP, 4, ctypes.create_string_buffer(120))
if ring < 0:
    sys.exit(77)
path, source = sys.argv[1:]
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.pwrite(fd, bytes(65536), 0)


def register(protection, flags):
    address = libc.mmap(None, ctypes.c_size_t(65536), protection, flags, fd, ctypes.c_long(0))
    vector = (ctypes.c_size_t * 2)(address, 65536)
    if libc.syscall(REGISTER, ring, 0, vector, 1) < 0:
        return errno.errorcode[ctypes.get_errno()]
    libc.syscall(REGISTER, ring, 1, None, 0)
    return 'ok'


both = mmap.PROT_READ | mmap.PROT_WRITE
with mmap.mmap(fd, 65536) as shared:
    read = os.preadv(os.open(source, os.O_RDONLY | os.O_DIRECT), [memoryview(shared)], 0)
print(f'shared {register(both, mmap.MAP_SHARED)}, read into it {read}, private {register(both, mmap.MAP_PRIVATE)}, '
      f'to be read {register(mmap.PROT_READ, mmap.MAP_SHARED)}')
END
for file in ext4/file xfs/file btrfs/file tmpfs/file "$loop"; do
	case $file in
	/*) name='block device' path=$file ;;
	*) name=${file%/*} path=$tmp/$file ;;
	esac
	case $name in
	tmpfs) wanted='shared ok, read into it 65536, private ok, to be read EFAULT' ;;
	*) wanted='shared EFAULT, read into it 65536, private ok, to be read EFAULT' ;;
	esac
	status=0
	got=$(python3 "$tmp/program" "$path" "$tmp/source") || status=$?
	[ $status -ne 77 ] || skip "no io_uring here"
	expect "$name" "$got" "$wanted"
done
