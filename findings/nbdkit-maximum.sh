#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: the maximum of NBD_INFO_BLOCK_SIZE is the longest request that a server takes.  nbdkit announces what plugin or
# filter say: 4 GiB - 1 of the plugin memory (1.42.3) and of the filter blocksize (1.32.5, too).  The server itself answers
# a READ of one byte more than 64 MiB with ENOMEM.
. "$(dirname "$0")/common.sh"

cat >"$tmp/client.py" <<'PY'
import struct
import sys

sys.path.insert(0, sys.argv[1])
from nbd_client import connect, option, take

s = connect(sys.argv[2])
largest = [struct.unpack('>I', data[10:])[0] for data in option(s, 7, struct.pack('>IHH', 0, 1, 3))
           if data[:2] == b'\0\3']
print('announces %s' % largest[0], end='')
for length in 64 << 20, (64 << 20) + 1:
    s.sendall(struct.pack('>IHHQQI', 0x25609513, 0, 0, 1, 0, length))
    _, error, _ = struct.unpack('>IIQ', take(s, 16))
    print(', %d bytes: error %d' % (length, error), end='')
    if not error:
        take(s, length)
PY

# seen SUITE [FILTER]
seen() {
	local socket=$tmp/$1/nbdkit.sock pid
	rm -f "$socket"
	chroot "$tmp/$1" nbdkit -f --unix /nbdkit.sock ${2:+--filter="$2"} memory 1G 2>/dev/null &
	pid=$!
	until [ -S "$socket" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	/usr/bin/python3 -B "$tmp/client.py" "$here" "$socket"
	kill $pid
	wait $pid
}

packages bookworm nbdkit=1.32.5-1
packages trixie nbdkit=1.42.3-1
want='announces 4294967295, 67108864 bytes: error 0, 67108865 bytes: error 12'
expect "nbdkit 1.32.5, blocksize" "$(seen bookworm blocksize)" "$want"
expect "nbdkit 1.42.3" "$(seen trixie)" "$want"
