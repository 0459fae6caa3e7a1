#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a file is attached to one loop device at a time, or its devices share one cache.  losetup attaches it again
# without a word, each device has a page cache of its own, and none takes a lock on the file (Linux 6.18): what was
# written to one and synced is not seen by the other, if that has read before.  So two exports of one image over two
# loop devices differ.  "losetup --nooverlap" returns the first device.
# Needs root and loop devices; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

head -c 1M /dev/zero | tr '\0' a >"$tmp/image"
loop_of "$tmp/image"
first=$loop
expect "--nooverlap" "$(losetup --nooverlap -f --show "$tmp/image")" "$first"
loop_of "$tmp/image"
say "Linux $(uname -r)"
expect "devices of the file" "$(losetup -n -O NAME -j "$tmp/image" | wc -l)" 2
expect "seen" "$(python3 - "$first" "$loop" "$tmp/image" <<'END'
import os, sys
first, second = (os.open(path, os.O_RDWR) for path in sys.argv[1:3])
os.pread(second, 4096, 0)
os.pwrite(first, b'b' * 4096, 0)
os.fsync(first)
with open(sys.argv[3], 'rb') as f:
    print('file %s, first %s, second %s' % tuple(
        data.decode() for data in (f.read(1), os.pread(first, 1, 0), os.pread(second, 1, 0))))
END
)" "file b, first b, second a"
