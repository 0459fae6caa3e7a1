#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: what a block device can do is a property of the device.  fallocate(PUNCH_HOLE) of a loop device over tmpfs
# frees memory until the first BLKZEROOUT ("blkdiscard -z").  tmpfs has no ZERO_RANGE, so that one falls back to
# writing, and the kernel takes all zeroing away from the device (Linux 6.18).  From then on PUNCH_HOLE is EOPNOTSUPP,
# until the device is attached again; BLKDISCARD goes on.  So a program that probed at its start gets errors later.
# Needs root and loop devices; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

filesystem tmpfs
head -c 1M /dev/zero | tr '\0' x >"$tmp/tmpfs/image"
loop_of "$tmp/tmpfs/image"
say "Linux $(uname -r)"

# punch OFFSET: 64 KiB there
punch() {
	python3 - "$loop" "$1" <<'END'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_RDWR)
keep_size_punch_hole = 3
rc = libc.fallocate(fd, keep_size_punch_hole, ctypes.c_long(int(sys.argv[2])), ctypes.c_long(65536))
print('EOPNOTSUPP' if rc and ctypes.get_errno() == errno.EOPNOTSUPP else rc)
END
}
limit() {
	[ "$(cat "/sys/block/${loop#/dev/}/queue/write_zeroes_max_bytes")" = 0 ] && echo none || echo some
}
expect "limit of zeroing" "$(limit)" some
expect "punch" "$(punch 0)" 0
blkdiscard -z -o 131072 -l 65536 "$loop"
expect "limit of zeroing after blkdiscard -z" "$(limit)" none
expect "punch" "$(punch 262144)" EOPNOTSUPP
before=$(stat -c %b "$tmp/tmpfs/image")
blkdiscard -o 524288 -l 65536 "$loop"
expect "sectors freed by blkdiscard" "$((before - $(stat -c %b "$tmp/tmpfs/image")))" 128
