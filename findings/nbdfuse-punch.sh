#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: if fallocate(PUNCH_HOLE) succeeds, the range reads as zeroes; what cannot do that refuses.  nbdfuse makes an
# NBD TRIM of it, which promises nothing (libnbd 1.14.2 and 1.22.2).  qemu-nbd announces TRIM without --discard=unmap,
# too, and then does nothing: fallocate returns 0, and the data stays.  So a program that punches in the place of
# writing zeroes finds the old data there.  FALLOC_FL_ZERO_RANGE zeroes.
# Needs root, mmdebstrap and FUSE.
. "$(dirname "$0")/common.sh"

cat >"$tmp/punch.py" <<'PY'
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_RDWR)
for name, mode in ('punch', 3), ('zero', 17):   # PUNCH_HOLE and ZERO_RANGE, both with KEEP_SIZE
    rc = libc.fallocate(fd, mode, ctypes.c_long(0), ctypes.c_long(65536))
    print('%s: %d, data %s' % (name, rc, 'stays' if any(os.pread(fd, 65536, 0)) else 'gone'), end=' ')
PY

# punched SUITE OPTION...: of qemu-nbd
punched() {
	local root=$tmp/$1 server client
	shift
	[ -c "$root/dev/fuse" ] || mknod "$root/dev/fuse" c 10 229
	head -c 1M /dev/zero | tr '\0' x >"$root/image"
	rm -f "$root/qemu.sock"
	touch "$root/disk"
	chroot "$root" qemu-nbd --persistent --shared=0 --format=raw --socket=/qemu.sock "$@" /image &
	server=$!
	until [ -S "$root/qemu.sock" ] || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
	chroot "$root" nbdfuse /disk 'nbd+unix:///?socket=/qemu.sock' &
	client=$!
	until [ -s "$root/disk" ] || ! kill -0 $client 2>/dev/null; do sleep 0.1; done
	python3 "$tmp/punch.py" "$root/disk"
	umount "$root/disk"
	wait $client
	kill $server
	wait $server
}

[ -c /dev/fuse ] || skip "no FUSE here"
packages bookworm libnbd-bin=1.14.2-1 qemu-utils=1:7.2+dfsg-7+deb12u18+b3
packages trixie libnbd-bin=1.22.2-1+b1 qemu-utils=1:10.0.13+ds-0+deb13u1
for suite in bookworm trixie; do
	expect "$suite" "$(punched $suite)" "punch: 0, data stays zero: 0, data gone "
	expect "$suite, --discard=unmap" "$(punched $suite --discard=unmap)" "punch: 0, data gone zero: 0, data gone "
done
