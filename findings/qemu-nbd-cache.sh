#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a server that announces NBD_CMD_CACHE and answers with success reads the range ahead.  nbdkit 1.42.3 does, with
# its plugin file.  qemu-nbd 10.0.13 announces CACHE, answers with success, and reads nothing of a raw image.  So a client
# that warms a disk that way, before a guest boots from it for instance, has warmed nothing.
. "$(dirname "$0")/common.sh"

case $(stat -f -c %T "$tmp") in
ext2/ext3 | xfs) ;;
*) skip "$tmp is not on ext4 or XFS" ;;
esac
packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1 nbdkit=1.42.3-1 python3-libnbd=1.22.2-1+b1
head -c 8M /dev/urandom >"$tmp/trixie/disk"
cat >"$tmp/trixie/client.py" <<'END'
import ctypes
import os
import sys
import time

import nbd

SIZE = 8 << 20
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
fd = os.open('/disk', os.O_RDONLY)
at = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(SIZE), 1, 1, fd, ctypes.c_long(0)))


def cached():
    pages = (ctypes.c_ubyte * (SIZE // 4096))()
    libc.mincore(at, ctypes.c_size_t(SIZE), pages)
    return sum(page & 1 for page in pages) * 4


h = nbd.NBD()
h.connect_unix(sys.argv[1])
print('announced' if h.can_cache() else 'not announced', end='')
for name, request in ('CACHE', h.cache), ('READ', lambda n, offset: h.pread(n, offset)):
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    before = cached()
    request(4 << 20, 0)
    # A server may start the read and answer before its end.
    end = time.monotonic() + 5
    while cached() < 4096 and time.monotonic() < end:
        time.sleep(0.1)
    now = cached()
    print(', %s: from %d to %s' % (name, before, '4096 KiB or more' if now >= 4096 else '%d KiB' % now), end='')
END
# seen NAME COMMAND...
seen() {
	local root=$tmp/trixie pid
	chroot "$root" "${@:2}" >/dev/null 2>&1 &
	pid=$!
	until [ -S "$root/$1.sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	chroot "$root" python3 /client.py "/$1.sock"
	kill $pid
	wait $pid || true
}
expect "nbdkit" "$(seen nbdkit nbdkit -f --unix /nbdkit.sock file /disk)" \
	"announced, CACHE: from 0 to 4096 KiB or more, READ: from 0 to 4096 KiB or more"
expect "qemu-nbd" "$(seen qemu qemu-nbd --persistent --format=raw --socket=/qemu.sock /disk)" \
	"announced, CACHE: from 0 to 0 KiB, READ: from 0 to 4096 KiB or more"
