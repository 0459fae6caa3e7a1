#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: the size of a block device is a multiple of its sector, and a loop device is rounded down to that.  A loop
# device with sectors of 4096 over a file of 8704 bytes has 8704 (Linux 6.18), and its last 512 bytes cannot be read:
# cached that is EIO, with O_DIRECT EINVAL.  So what reads a whole device, as a backup does, fails at its end.
# Needs root and a loop device; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

head -c 8704 /dev/zero >"$tmp/image"
loop_of "$tmp/image" --sector-size 4096
say "Linux $(uname -r)"

# read_tail FLAG
read_tail() {
	python3 - "$loop" "$1" <<'END'
import errno, mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | getattr(os, sys.argv[2]))
try:
    print(os.preadv(fd, [mmap.mmap(-1, 4096)], 8192))
except OSError as e:
    print(errno.errorcode[e.errno])
END
}
expect "sector" "$(blockdev --getss "$loop")" 4096
expect "size" "$(blockdev --getsize64 "$loop")" 8704
expect "the tail, cached" "$(read_tail O_CLOEXEC)" EIO
expect "the tail, direct" "$(read_tail O_DIRECT)" EINVAL
