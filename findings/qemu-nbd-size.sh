#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a READ past the end of a file that was cut under a server is an error, and a file that has grown has its new
# size for the next client.  nbdkit 1.42.3 is so.  qemu-nbd 10.0.13 keeps the size of its start for all clients, and
# returns zeroes for what is gone.  So an image that was cut by mistake copies without an error, and a grown volume
# needs a new server.
. "$(dirname "$0")/common.sh"

cat >"$tmp/client.py" <<'PY'
import os
import nbd


def connect():
    h = nbd.NBD()
    h.connect_unix('/nbd.sock')
    return h


before = connect()
os.truncate('/image', 2 << 20)
print('size %d, grown %d' % (before.get_size(), connect().get_size()), end=', ')
os.truncate('/image', 65536)
try:
    print('READ %s' % ('zeroes' if not any(before.pread(512, 1 << 19)) else 'data'), end=', ')
except nbd.Error as e:
    print('READ %s' % e.errno, end=', ')
print('cut %d' % connect().get_size())
PY

# seen COMMAND...
seen() {
	local root=$tmp/trixie pid
	head -c 1M /dev/zero | tr '\0' x >"$root/image"
	rm -f "$root/nbd.sock"
	chroot "$root" "$@" >/dev/null 2>&1 &
	pid=$!
	until [ -S "$root/nbd.sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	cp "$tmp/client.py" "$root/tmp"
	chroot "$root" python3 /tmp/client.py
	kill $pid
	wait $pid || true
}

packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1 nbdkit=1.42.3-1 python3-libnbd=1.22.2-1+b1
expect "nbdkit" "$(seen nbdkit -f --unix /nbd.sock file /image)" "size 1048576, grown 2097152, READ EIO, cut 65536"
expect "qemu-nbd" "$(seen qemu-nbd --persistent --shared=0 --format=raw --socket=/nbd.sock /image)" \
	"size 1048576, grown 1048576, READ zeroes, cut 1048576"
