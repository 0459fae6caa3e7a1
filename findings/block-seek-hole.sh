#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: where holes are not known all is data, so lseek(SEEK_DATA) answers the offset and SEEK_HOLE the end: files of
# file systems without holes do that, and lseek(2) names it as the simplest implementation.  A block device answers
# EINVAL to both, as if whence were unknown (Linux 6.18): a program that takes EINVAL for "no such
# feature here" is right, one that takes ENXIO alone for "no data" is not.  Here: a loop device over a file with a hole.
# Needs root and a loop device; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

[ "$(id -u)" -eq 0 ] || skip "a loop device needs root"
truncate -s 1M "$tmp/image"
loop=$(losetup -f --show "$tmp/image") || skip "no loop device here"
trap 'losetup -d "$loop"; rm -rf --one-file-system "$tmp"' EXIT
say "Linux $(uname -r)"

# seek FILE WHENCE: the offset, or the name of the errno
seek() {
	python3 - "$@" <<'END'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
try:
    print(os.lseek(fd, 0, getattr(os, sys.argv[2])))
except OSError as e:
    print(errno.errorcode[e.errno])
END
}
expect "the file, SEEK_DATA" "$(seek "$tmp/image" SEEK_DATA)" ENXIO
expect "the file, SEEK_HOLE" "$(seek "$tmp/image" SEEK_HOLE)" 0
expect "the device, SEEK_DATA" "$(seek "$loop" SEEK_DATA)" EINVAL
expect "the device, SEEK_HOLE" "$(seek "$loop" SEEK_HOLE)" EINVAL
