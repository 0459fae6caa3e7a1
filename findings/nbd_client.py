# SPDX-License-Identifier: BSD-3-Clause
"""The begin of an NBD client, for findings: connect(PATH), take(S, N), and option(S, NUMBER, DATA)."""

import socket
import struct


def take(s, n):
    got = b''
    while len(got) < n:
        more = s.recv(n - len(got))
        assert more, 'the server has closed'
        got += more
    return got


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    take(s, 18)
    s.sendall(struct.pack('>I', 3))
    return s


def option(s, number, data=b''):
    """Its replies, to NBD_REP_ACK, without that: a list of data."""
    s.sendall(b'IHAVEOPT' + struct.pack('>II', number, len(data)) + data)
    replies = []
    while True:
        _, _, kind, length = struct.unpack('>QIII', take(s, 20))
        assert kind < 0x80000000, hex(kind)
        data = take(s, length)
        if kind == 1:
            return replies
        replies.append(data)
