#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keep a device of the kernel's NBD client over restarts of its server.

	nbd-keep.py /dev/nbdN SECONDS -unix PATH | HOST PORT

The device has been attached with nbd-client, which leaves it alone from then on.  This tells the
kernel to let requests wait for SECONDS when the connection is lost, waits for the kernel to tell
that it is, connects anew to the same address, for ever, and hands the socket to the kernel.  Prints
a line when it is ready and when it has done that.  Needs root."""
import errno
import os
import socket
import struct
import sys
import time

# linux/netlink.h, linux/genetlink.h
NETLINK_GENERIC, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 16, 270, 1
NLMSG_ERROR, NLM_F_REQUEST, NLM_F_ACK = 2, 1, 4
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS = 1, 2, 7
CTRL_ATTR_MCAST_GRP_ID = 2
# linux/nbd-netlink.h
NBD_CMD_RECONFIGURE, NBD_CMD_LINK_DEAD = 3, 4
NBD_ATTR_INDEX, NBD_ATTR_SOCKETS, NBD_ATTR_DEAD_CONN_TIMEOUT = 1, 7, 8
NBD_SOCK_ITEM, NBD_SOCK_FD = 1, 1
# The NBD protocol
NBD_OPT_GO, NBD_REP_ACK, NBD_REP_ERROR = 7, 1, 1 << 31


def attr(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def attrs(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3fff] = data[4:size]
        data = data[size + 3 & ~3:]
    return found


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.bind((0, 0))

    def read(self):
        """One message: its type, the command, the attributes; of an error type, 0, the number."""
        data = self.socket.recv(65536)
        kind = struct.unpack_from("=H", data, 4)[0]
        if kind == NLMSG_ERROR:
            return kind, 0, -struct.unpack_from("=i", data, 16)[0]
        return kind, data[16], attrs(data[20:])

    def call(self, family, command, data, flags=NLM_F_ACK):
        size = 20 + len(data)
        self.socket.send(struct.pack("=IHHIIBBH", size, family, NLM_F_REQUEST | flags, 0, 0,
                                     command, 1, 0) + data)
        kind, _, found = self.read()
        if kind == NLMSG_ERROR and found:
            raise OSError(found, os.strerror(found))
        return found


def read_all(sock, size):
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionError("the server has closed the connection")
        data += part
    return data


def connect(host, port):
    """A socket on which the kernel can go on: the server's default export is chosen."""
    if host == "-unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(port)
    else:
        sock = socket.create_connection((host, port))
    try:
        if read_all(sock, 18)[:16] != b"NBDMAGICIHAVEOPT":
            raise ConnectionError("no NBD server")
        # Fixed newstyle; an empty name and no wishes for information.
        sock.sendall(struct.pack(">I", 1) +
                     struct.pack(">QIIIH", 0x49484156454F5054, NBD_OPT_GO, 6, 0, 0))
        reply = 0
        while reply != NBD_REP_ACK:
            _, _, reply, size = struct.unpack(">QIII", read_all(sock, 20))
            read_all(sock, size)
            if reply & NBD_REP_ERROR:
                raise ConnectionError("the server refuses")
        return sock
    except OSError:
        sock.close()
        raise


def main():
    index = attr(NBD_ATTR_INDEX, struct.pack("=I", int(sys.argv[1].removeprefix("/dev/nbd"))))
    wait = attr(NBD_ATTR_DEAD_CONN_TIMEOUT, struct.pack("=Q", int(sys.argv[2])))
    control, events = Netlink(), Netlink()
    nbd = control.call(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attr(CTRL_ATTR_FAMILY_NAME, b"nbd\0"), 0)
    group = attrs(attrs(nbd[CTRL_ATTR_MCAST_GROUPS])[1])[CTRL_ATTR_MCAST_GRP_ID]
    events.socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, struct.unpack("=I", group)[0])
    family = struct.unpack("=H", nbd[CTRL_ATTR_FAMILY_ID])[0]
    control.call(family, NBD_CMD_RECONFIGURE, index + wait)
    print("ready", flush=True)

    while True:
        _, command, found = events.read()
        if command != NBD_CMD_LINK_DEAD or attr(NBD_ATTR_INDEX, found[NBD_ATTR_INDEX]) != index:
            continue
        while True:
            try:
                with connect(*sys.argv[3:]) as sock:
                    one = attr(NBD_SOCK_ITEM, attr(NBD_SOCK_FD, struct.pack("=I", sock.fileno())))
                    control.call(family, NBD_CMD_RECONFIGURE,
                                 index + wait + attr(NBD_ATTR_SOCKETS, one))
                break
            except OSError as e:
                # No server yet; or the kernel tells of a lost connection before it has given it up.
                if isinstance(e, ConnectionError) or e.errno in (errno.ENOENT, errno.ENOSPC):
                    time.sleep(0.1)
                    continue
                raise
        print("connected again", flush=True)


main()
