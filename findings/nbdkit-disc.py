# SPDX-License-Identifier: BSD-3-Clause
"""An NBD client on the socket argv[1]: a READ, then NBD_CMD_DISC."""

import select
import struct
import sys

from nbd_client import connect, option, take

s = connect(sys.argv[1])


def request(command, length):
    s.sendall(struct.pack('>IHHQQI', 0x25609513, 0, command, 1, 0, length))


option(s, 7, struct.pack('>IH', 0, 0))  # NBD_OPT_GO
request(0, 512)
take(s, 16 + 512)
request(2, 0)
print('closed' if select.select([s], [], [], 5)[0] and not s.recv(1) else 'open')
