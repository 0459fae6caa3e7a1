#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: NBD_OPT_INFO and NBD_OPT_GO, one right behind the other, announce the same flags of an export.  With extended
# headers qemu-nbd 10.0.13 announces NBD_FLAG_BLOCK_STATUS_PAYLOAD (0x1000) to INFO always, to GO only if a meta context
# was chosen: who decides by INFO sends a payload that is refused.
. "$(dirname "$0")/common.sh"

cat >"$tmp/client.py" <<'PY'
import struct
import sys

sys.path.insert(0, sys.argv[1])
from nbd_client import connect, option

CONTEXT = struct.pack('>III', 0, 1, 15) + b'base:allocation'


def payload(s, number):
    flags = [struct.unpack('>H', data[10:])[0] for data in option(s, number, struct.pack('>IH', 0, 0))
             if data[:2] == b'\0\0']
    return 'yes' if flags[0] & 0x1000 else 'no'


for chosen in False, True:
    s = connect(sys.argv[2])
    option(s, 11)                       # NBD_OPT_EXTENDED_HEADERS
    if chosen:
        option(s, 10, CONTEXT)          # NBD_OPT_SET_META_CONTEXT
    print('%s: INFO %s, GO %s' % ('chosen' if chosen else 'none', payload(s, 6), payload(s, 7)),
          end='' if chosen else '; ')
    s.close()
PY

packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1
truncate -s 1M "$tmp/trixie/disk"
chroot "$tmp/trixie" qemu-nbd --persistent --format=raw --socket=/qemu.sock /disk &
pid=$!
until [ -S "$tmp/trixie/qemu.sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
got=$(/usr/bin/python3 -B "$tmp/client.py" "$here" "$tmp/trixie/qemu.sock")
kill $pid
wait $pid || true
expect "payload announced, context" "$got" "none: INFO yes, GO no; chosen: INFO yes, GO yes"
