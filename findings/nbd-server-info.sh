#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: NBD_OPT_INFO and NBD_OPT_GO in one connection announce the same size and flags.  To INFO nbd-server 3.26.1
# announces a size of 0, to GO the size of the file.  So nbdinfo, which asks by INFO, shows each export as empty, and
# a monitor that asks so, without a session, sees every disk gone.
. "$(dirname "$0")/common.sh"

cat >"$tmp/client.py" <<'PY'
import struct
import sys

sys.path.insert(0, sys.argv[1])
from nbd_client import connect, option

s = connect(sys.argv[2])
for name, number in ('INFO', 6), ('GO', 7):
    for data in option(s, number, struct.pack('>I', 4) + b'disk' + struct.pack('>H', 0)):
        if data[:2] == b'\0\0':
            print('%s %d, flags 0x%x' % (name, *struct.unpack('>QH', data[2:])), end=' ')
PY
packages trixie nbd-server=1:3.26.1-6.1 libnbd-bin=1.22.2-1+b1
root=$tmp/trixie
truncate -s 1M "$root/disk"
cat >"$root/config" <<'END'
[generic]
	user = root
	group = root
	unixsock = /nbd.sock
	listenaddr = 127.0.0.1
	port = 10819
[disk]
	exportname = /disk
END
chroot "$root" nbd-server -n -C /config 2>/dev/null &
pid=$!
until [ -S "$root/nbd.sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
undo+=("kill $pid")
expect "announced" "$(/usr/bin/python3 -B "$tmp/client.py" "$here" "$root/nbd.sock")" \
	"INFO 0, flags 0x141 GO 1048576, flags 0x141 "
expect "nbdinfo --size" "$(chroot "$root" nbdinfo --size 'nbd+unix:///disk?socket=/nbd.sock')" 0
expect "bytes that nbdcopy reads" "$(chroot "$root" nbdcopy 'nbd+unix:///disk?socket=/nbd.sock' - | wc -c)" 1048576
