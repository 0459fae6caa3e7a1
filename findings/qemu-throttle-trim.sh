#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a limit of bytes per second holds back what moves data: READ and WRITE, and not TRIM or WRITE_ZEROES, which are
# a few bytes.  The filter rate of nbdkit 1.42.3 has it so.  QEMU's throttle (10.0.13) counts the range of a TRIM or a
# WRITE_ZEROES as data, also where nothing is stored: with 8 MiB/s a TRIM of 32 MiB holds the next WRITE for 4 s.  The
# READ of a hole is free there: QEMU's server asks for holes first and reads none, and nbdkit reads it.
. "$(dirname "$0")/common.sh"

packages trixie nbdkit=1.42.3-1 qemu-utils=1:10.0.13+ds-0+deb13u1 python3-libnbd=1.22.2-1+b1
cat >"$tmp/trixie/client.py" <<'END'
import sys
import time

import nbd

M = 1 << 20


def took(h, call):
    begin = time.monotonic()
    call(h)
    h.pwrite(bytes(512), 200 * M)
    return 'waits' if time.monotonic() - begin > 1.5 else 'free'


for name, call in (
        ('READ of data', lambda h: h.pread(32 * M, 64 * M)),
        ('WRITE_ZEROES', lambda h: h.zero(32 * M, 0)),
        ('READ of a hole', lambda h: h.pread(32 * M, 0)),
        ('TRIM', lambda h: h.trim(32 * M, 64 * M)),
        ('TRIM of a hole', lambda h: h.trim(32 * M, 64 * M))):
    h = nbd.NBD()
    h.connect_unix(sys.argv[1])
    h.pwrite(bytes(512), 200 * M)
    print('  %s: %s' % (name, took(h, call)))
    h.shutdown()
END
cat >"$tmp/trixie/program" <<'END'
cd /tmp
# with NAME PID: the client, and then the server of that file ends
with() {
	timeout 30 sh -c "until [ -s $2 ]; do sleep 0.1; done"
	echo "$1"
	python3 /client.py "/tmp/$1"
	kill "$(cat "$2")"
}
head -c 256M /dev/urandom >disk
qemu-storage-daemon --daemonize --pidfile qemu.pid --nbd-server addr.type=unix,addr.path=/tmp/qemu \
	--blockdev driver=file,node-name=file,filename=/tmp/disk,discard=unmap \
	--object throttle-group,id=group,x-bps-total=$((8 << 20)) \
	--blockdev driver=throttle,throttle-group=group,file=file,node-name=slow,discard=unmap \
	--export type=nbd,id=export,node-name=slow,name=,writable=on
with qemu qemu.pid
head -c 256M /dev/urandom >disk
nbdkit -U /tmp/nbdkit -P nbdkit.pid --filter=rate file disk rate=64M
with nbdkit nbdkit.pid
END
seen=$(chroot "$tmp/trixie" bash /program)
expect "32 MiB at 8 MiB/s" "$seen" \
"qemu
  READ of data: waits
  WRITE_ZEROES: waits
  READ of a hole: free
  TRIM: waits
  TRIM of a hole: waits
nbdkit
  READ of data: waits
  WRITE_ZEROES: free
  READ of a hole: waits
  TRIM: free
  TRIM of a hole: free"
