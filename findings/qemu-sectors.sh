#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: NBD counts in bytes, so an image of 1000 bytes is an export of 1000, and a copy of it has 1000.  QEMU rounds
# up to its sectors of 512 (10.0.13).  qemu-nbd exports 1024, and a client's write makes the file 1024 long.  qemu-img
# makes 1024 of an NBD export of 1000, and a copy to an export of 1000 fails with ENOSPC.  nbdcopy of libnbd 1.22.2
# keeps the size.
. "$(dirname "$0")/common.sh"

packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1 nbdkit=1.42.3-1 libnbd-bin=1.22.2-1+b1 python3-libnbd=1.22.2-1+b1
root=$tmp/trixie
head -c 1000 /dev/zero | tr '\0' x >"$root/image"
chroot "$root" qemu-nbd --persistent --format=raw --socket=/qemu.sock /image &
pid=$!
until [ -S "$root/qemu.sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
expect "qemu-nbd, size" "$(chroot "$root" nbdinfo --size 'nbd+unix:///?socket=/qemu.sock')" 1024
chroot "$root" python3 -c '
import nbd
h = nbd.NBD()
h.connect_unix("/qemu.sock")
h.pwrite(b"y" * 24, 1000)
h.shutdown()'
kill $pid
wait $pid || true
expect "the file, after a write at its end" "$(stat -c %s "$root/image")" 1024

# shellcheck disable=SC2016 # nbdkit sets it
from() {
	chroot "$root" nbdkit -U - memory 1000 --run "$1"' "$uri" /copy' && stat -c %s "$root/copy"
	rm -f "$root/copy"
}
expect "qemu-img of an export of 1000" "$(from 'qemu-img convert -f raw -O raw')" 1024
expect "nbdcopy of an export of 1000" "$(from nbdcopy)" 1000
head -c 1000 /dev/zero | tr '\0' x >"$root/image"
# shellcheck disable=SC2016 # nbdkit sets it
to() {
	chroot "$root" nbdkit -U - memory 1000 --run "$1"' "$uri" && nbdcopy "$uri" - | cmp - /image && echo copied' 2>&1
}
expect "nbdcopy to an export of 1000" "$(to 'nbdcopy /image')" copied
expect "qemu-img to an export of 1000" "$(to 'qemu-img convert -n -f raw -O raw /image' | grep -v ^nbdkit)" \
	"qemu-img: error while writing at byte 0: No space left on device"
