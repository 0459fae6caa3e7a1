#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a user of a block device may expect of it, whatever is below: one function for each case,
in an order of its own.  A case that fails ends the program with another status than 0.

usage: disk-cases.py DEVICE, which is written all over; disk-cases.py --read-only DEVICE"""
import errno
import mmap
import os
import subprocess
import sys

SECTOR, PAGE, MIB = 512, 4096, 1 << 20


def pages(data):
    """@data where O_DIRECT wants it: in pages."""
    buf = mmap.mmap(-1, max(len(data) + PAGE - 1, PAGE) // PAGE * PAGE)
    buf[:len(data)] = data
    return memoryview(buf)[:len(data)]


def direct_write(fd, data, at):
    assert os.pwritev(fd, [pages(data)], at) == len(data)


def direct_read(fd, n, at):
    view = pages(bytes(n))
    return bytes(view[:os.preadv(fd, [view], at)])


def fails(code, call, *args):
    try:
        call(*args)
    except OSError as e:
        assert e.errno == code, e
        return
    raise AssertionError("no %s" % errno.errorcode[code])


def direct_alignment(path, direct, size):
    """Each sector by itself is written and read; parts of a sector are refused."""
    base = os.urandom(64 * SECTOR)
    direct_write(direct, base, MIB)
    for first in range(0, 64, 7):
        n = 1 + first % 5
        data = os.urandom(n * SECTOR)
        direct_write(direct, data, MIB + first * SECTOR)
        base = base[:first * SECTOR] + data + base[(first + n) * SECTOR:]
    assert direct_read(direct, len(base), MIB) == base
    fails(errno.EINVAL, direct_read, direct, SECTOR, MIB + 1)
    fails(errno.EINVAL, direct_read, direct, SECTOR - 1, MIB)


def parts_of_sectors(path, direct, size):
    """Bytes that the page cache writes are on the disk, and those beside them are as they were."""
    old = os.urandom(4 * PAGE)
    direct_write(direct, old, 2 * MIB)
    with open(path, "r+b", buffering=0) as f:
        for at, data in ((1, b"a"), (SECTOR - 1, b"bcd"), (PAGE + 5, os.urandom(PAGE))):
            assert os.pwrite(f.fileno(), data, 2 * MIB + at) == len(data)
            old = old[:at] + data + old[at + len(data):]
        os.fsync(f.fileno())
    assert direct_read(direct, len(old), 2 * MIB) == old


def large_requests(path, direct, size):
    """A request larger than the largest of the server, at an odd sector."""
    data = os.urandom(3 * MIB + SECTOR)
    direct_write(direct, data, 4 * MIB + 3 * SECTOR)
    assert direct_read(direct, len(data), 4 * MIB + 3 * SECTOR) == data


def the_end(path, direct, size):
    data = os.urandom(SECTOR)
    direct_write(direct, data, size - SECTOR)
    assert direct_read(direct, SECTOR, size - SECTOR) == data
    assert direct_read(direct, PAGE, size - SECTOR) == data
    assert direct_read(direct, SECTOR, size) == b""
    fails(errno.ENOSPC, direct_write, direct, data, size)


def discard_and_zero(path, direct, size):
    """Zeroes, and nothing else, where zeroes were asked for; a discard changes its blocks alone."""
    data = os.urandom(MIB)
    direct_write(direct, data, 8 * MIB)
    for begin, n, option in ((64, 64, "-z"), (201, 7, "-z"), (256, 512, None)):
        command = ["blkdiscard", "-o", str(8 * MIB + begin * SECTOR), "-l", str(n * SECTOR), path]
        subprocess.run(command + [option] * bool(option), check=True)
        got = direct_read(direct, MIB, 8 * MIB)
        hole = got[begin * SECTOR:(begin + n) * SECTOR]
        assert not option or hole == bytes(len(hole))
        data = data[:begin * SECTOR] + hole + data[(begin + n) * SECTOR:]
        assert got == data
    # Written again, it is there again.
    data = os.urandom(MIB)
    direct_write(direct, data, 8 * MIB)
    assert direct_read(direct, MIB, 8 * MIB) == data


def mapped(path, direct, size):
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, MIB, offset=12 * MIB) as m:
        m[100:103] = b"xyz"
        m.flush()
    os.close(fd)
    assert direct_read(direct, SECTOR, 12 * MIB)[100:103] == b"xyz"


def exclusive(path, direct, size):
    """A user who has the device for itself keeps a second one out."""
    first = os.open(path, os.O_RDWR | os.O_EXCL)
    fails(errno.EBUSY, os.open, path, os.O_RDWR | os.O_EXCL)
    os.close(first)
    os.close(os.open(path, os.O_RDWR | os.O_EXCL))


def read_only(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    assert len(direct_read(fd, PAGE, 0)) == PAGE
    os.close(fd)
    try:
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    except OSError as e:
        assert e.errno in (errno.EACCES, errno.EROFS, errno.EPERM), e
        return
    fails(errno.EPERM, direct_write, fd, bytes(PAGE), 0)
    os.close(fd)


if sys.argv[1] == "--read-only":
    read_only(sys.argv[2])
    sys.exit()
device = sys.argv[1]
direct_fd = os.open(device, os.O_RDWR | os.O_DIRECT)
length = os.lseek(direct_fd, 0, os.SEEK_END)
for case in (direct_alignment, parts_of_sectors, large_requests, the_end, discard_and_zero, mapped,
             exclusive):
    print(case.__name__, flush=True)
    case(device, direct_fd, length)
