# SPDX-License-Identifier: BSD-3-Clause
"""An NBD client on the socket argv[1]: a READ, then NBD_CMD_DISC."""

import select
import socket
import struct
import sys

s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])


def take(n):
    got = b''
    while len(got) < n:
        more = s.recv(n - len(got))
        assert more
        got += more
    return got


def request(command, length):
    s.sendall(struct.pack('>IHHQQI', 0x25609513, 0, command, 1, 0, length))


take(18)
s.sendall(struct.pack('>I', 3) + b'IHAVEOPT' + struct.pack('>IIIH', 7, 6, 0, 0))
reply = 0
while reply != 1:                       # NBD_REP_ACK
    _, _, reply, length = struct.unpack('>QIII', take(20))
    take(length)
request(0, 512)
take(16 + 512)
request(2, 0)
print('closed' if select.select([s], [], [], 5)[0] and not s.recv(1) else 'open')
