#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: after WRITE_ZEROES with NBD_CMD_FLAG_NO_HOLE the range is allocated, and BLOCK_STATUS says zero without
# hole.  The range is allocated, but nbdkit 1.42.3 and qemu-nbd 10.0.13 report zero and hole, since the file system
# shows an unwritten range as a hole.  So a copy that keeps what BLOCK_STATUS says makes a thin image of a thick one.
. "$(dirname "$0")/common.sh"

cat >"$tmp/client.py" <<'PY'
import os
import nbd

h = nbd.NBD()
h.add_meta_context('base:allocation')
h.connect_unix('/nbd.sock')
h.zero(65536, 0, nbd.CMD_FLAG_NO_HOLE)
h.flush()
extents = []
h.block_status(131072, 0, lambda context, offset, entries, error: extents.extend(entries))
print('sectors %d, status %s' % (os.stat('/image').st_blocks, extents[:4]))
PY

# seen COMMAND...
seen() {
	local root=$tmp/trixie pid
	head -c 1M /dev/zero | tr '\0' x >"$root/image"
	sync "$root/image"
	rm -f "$root/nbd.sock"
	chroot "$root" "$@" >/dev/null 2>&1 &
	pid=$!
	until [ -S "$root/nbd.sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	cp "$tmp/client.py" "$root/tmp"
	chroot "$root" python3 /tmp/client.py | sed 's/65536, 3, 983040, 0\|65536, 3, 65536, 0/65536 zero and hole, then data/'
	kill $pid
	wait $pid || true
}

case $(stat -f -c %T "$tmp") in
ext2/ext3 | xfs) ;;
*) skip "$tmp is not on ext4 or XFS" ;;
esac
packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1 nbdkit=1.42.3-1 python3-libnbd=1.22.2-1+b1
want='sectors 2048, status [65536 zero and hole, then data]'
expect "nbdkit" "$(seen nbdkit -f --unix /nbd.sock file /image)" "$want"
expect "qemu-nbd" "$(seen qemu-nbd --persistent --discard=unmap --format=raw --socket=/nbd.sock /image)" "$want"
