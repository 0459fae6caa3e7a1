#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a block device without space left (thin, or a loop device over a full file system) is ENOSPC to who writes, in
# the write or in the fsync.  With O_DIRECT it is ENOSPC.  Through the page cache the write succeeds and fsync(2) answers
# EIO: the cache of a block device keeps no other error (Linux 6.18).  So who has a rule for ENOSPC, such
# as a virtual machine that is to stop then (werror=enospc), never sees it on a cached device.
# Needs root, a tmpfs and a loop device; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

[ "$(id -u)" -eq 0 ] || skip "a mount needs root"
mkdir "$tmp/small"
mount -t tmpfs -o size=4m tmpfs "$tmp/small" || skip "no tmpfs here"
trap 'umount "$tmp/small"; rm -rf --one-file-system "$tmp"' EXIT
truncate -s 16M "$tmp/small/image"
loop=$(losetup -f --show "$tmp/small/image") || skip "no loop device here"
trap 'losetup -d "$loop"; umount "$tmp/small"; rm -rf --one-file-system "$tmp"' EXIT
head -c 8M /dev/zero >"$tmp/small/ballast" 2>/dev/null || true
say "Linux $(uname -r)"

# errors FLAG: of a write of 1 MiB at 8 MiB and of the fsync behind it
errors() {
	python3 - "$loop" "$1" <<'END'
import errno, mmap, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | getattr(os, sys.argv[2]))
data = mmap.mmap(-1, 1 << 20)           # aligned
for name, call in ('write', lambda: os.pwrite(fd, data, 8 << 20)), ('fsync', lambda: os.fsync(fd)):
    try:
        call()
        print(name, 'ok', end=' ')
    except OSError as e:
        print(name, errno.errorcode[e.errno], end=' ')
END
}
expect "O_DIRECT" "$(errors O_DIRECT)" "write ENOSPC fsync ok "
expect "cached" "$(errors O_CLOEXEC)" "write ok fsync EIO "
