#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A FUSE file system with one file, "disk", whose data is in memory and who says that all of it is
a hole: as one whose daemon does not know what is in the kernel's write-back cache.  More files in
its directory can be made, renamed and removed.  fuse-hole.py MOUNTPOINT BYTES [refuses|blocks];
needs root.  Serves until it is unmounted.

"refuses": EINVAL is the answer to ZERO_RANGE, as of fuse2fs, and to O_DIRECT reads of more than a
page, as of unionfs-fuse; and PUNCH_HOLE leaves parts of a block as they are.

"blocks": EINVAL is the answer to O_DIRECT reads of a part of a block.

A write that begins with "LOST" is answered and forgotten, and is the error of the next fsync of the
description that wrote, and of no other one, as with sshfs."""

import ctypes
import errno
import itertools
import os
import stat
import struct
import sys

FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36     # have no answer
SETATTR, MKNOD, UNLINK, RENAME, RENAME2 = 4, 8, 10, 12, 45
LOOKUP, GETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR, RELEASEDIR, \
    FALLOCATE, LSEEK = 1, 3, 14, 15, 16, 17, 18, 20, 25, 26, 27, 29, 43, 46
ROOT, FILE = 1, 2
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 0x1, 0x2, 0x10
PARALLEL_DIROPS = 1 << 18         # names are looked up at the same time

files = {FILE: bytearray(int(sys.argv[2]))}     # by node
names = {b'disk': FILE}
refuses = sys.argv[3:] == ['refuses']
blocks = sys.argv[3:] == ['blocks']
opened = itertools.count(1)       # numbers of descriptions
lost = set()                      # those that have lost a write


def attr(node):
    mode, size = (stat.S_IFDIR | 0o755, 0) if node == ROOT else \
        (stat.S_IFREG | 0o644, len(files[node]))
    return struct.pack('<6Q10I', node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096,
                       0)


def lookup(_, body):
    node = names.get(body.rstrip(b'\0'))
    if not node:
        return errno.ENOENT
    return struct.pack('<4Q2I', node, 1, 0, 0, 0, 0) + attr(node)


def mknod(_, body):
    name, node = body[16:].rstrip(b'\0'), max(files) + 1
    names[name], files[node] = node, bytearray()
    return lookup(ROOT, name)


def unlink(_, body):
    return b'' if names.pop(body.rstrip(b'\0'), None) else errno.ENOENT


def rename(_, body):
    old, new = body.rstrip(b'\0').split(b'\0')
    names[new] = names.pop(old)
    return b''


def read(node, body):
    _, off, size, _, _, flags = struct.unpack_from('<QQIIQI', body)
    if flags & os.O_DIRECT and (refuses and size > 4096 or blocks and size % 4096):
        return errno.EINVAL
    return bytes(files[node][off:off + size])


def write(node, body):
    description, off, size = struct.unpack_from('<QQI', body)
    if body[40:44] == b'LOST':
        lost.add(description)
    else:
        files[node][off:off + size] = body[40:40 + size]
    return struct.pack('<II', size, 0)


def fsync(_, body):
    description, = struct.unpack_from('<Q', body)
    if description not in lost:
        return b''
    lost.remove(description)
    return errno.EIO


def fallocate(node, body):
    data = files[node]
    _, off, size, mode = struct.unpack_from('<QQQI', body)
    print(f'fallocate {mode}', flush=True)
    if refuses and mode == PUNCH_HOLE | KEEP_SIZE:
        for block in range((off + 4095) // 4096, min(off + size, len(data)) // 4096):
            data[block * 4096:(block + 1) * 4096] = bytes(4096)
        return b''
    return errno.EINVAL if refuses and mode & ZERO_RANGE else errno.EOPNOTSUPP


def lseek(_, body):
    _, off, whence = struct.unpack_from('<QQI', body)
    if whence == os.SEEK_DATA:
        print('asked for data', flush=True)
        return errno.ENXIO
    return struct.pack('<Q', off)


def answer(op, node, body):
    """What follows the header, or an errno."""
    if op == INIT:
        return struct.pack('<4I2H2I2H8I', 7, 31, 65536, PARALLEL_DIROPS, 16, 12, 65536, 1, 0, 0,
                           *[0] * 8)
    if op in (GETATTR, SETATTR):
        return struct.pack('<QII', 0, 0, 0) + attr(node)
    if op in (OPEN, OPENDIR):
        return struct.pack('<QII', next(opened), 0, 0)
    if op == STATFS:
        return struct.pack('<5Q4I6I', 1 << 20, 1 << 19, 1 << 19, 16, 8, 4096, 255, 4096, 0,
                           *[0] * 6)
    if op in (RELEASE, RELEASEDIR, FLUSH):
        return b''
    calls = {LOOKUP: lookup, READ: read, WRITE: write, LSEEK: lseek, FALLOCATE: fallocate,
             MKNOD: mknod, UNLINK: unlink, FSYNC: fsync,
             RENAME: lambda node, body: rename(node, body[8:]),
             RENAME2: lambda node, body: rename(node, body[16:])}
    return calls[op](node, body) if op in calls else errno.ENOSYS


def main():
    fuse = os.open('/dev/fuse', os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f'fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other'
    if libc.mount(b'fuse-hole', sys.argv[1].encode(), b'fuse', 0, options.encode()):
        sys.exit(f'mount: {os.strerror(ctypes.get_errno())}')
    print('mounted', flush=True)
    while True:
        try:
            request = os.read(fuse, 1 << 20)
        except OSError as e:
            if e.errno == errno.ENODEV:         # unmounted
                return
            if e.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue
            raise
        _, op, unique, node = struct.unpack_from('<IIQQ', request)
        if op in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        a = answer(op, node, request[40:])
        err, out = (-a, b'') if isinstance(a, int) else (0, a)
        os.write(fuse, struct.pack('<IiQ', 16 + len(out), err, unique) + out)


main()
