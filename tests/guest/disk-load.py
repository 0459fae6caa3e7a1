#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Load for a block device: sixteen threads write all over its first 32 MiB, past the page cache,
each in a part of its own, and read back what they wrote, until the file STOP exists.  An error or
other data ends it with another status than 0.  STOP.turns counts the turns of all threads.  Reads
and writes are of whole sectors of SECTOR bytes [512].  While the file STOP.killed exists a sync may
fail: the server was killed, and if it was in a sync, the next one reports that writes may be lost.

usage: disk-load.py DEVICE STOP [SECTOR]"""
import errno
import mmap
import os
import random
import sys
import threading

device, stop = sys.argv[1:3]
area, users, most, sector = 32 << 20, 16, 128 << 10, int((sys.argv[3:] or [512])[0])
fd = os.open(device, os.O_RDWR | os.O_DIRECT)
lock, turns, failed = threading.Lock(), 0, []


def count():
    global turns
    with lock:
        turns += 1
        with open(stop + ".turns.new", "w", encoding="ascii") as f:
            f.write(str(turns))
        os.rename(stop + ".turns.new", stop + ".turns")


def sync():
    try:
        os.fdatasync(fd)
    except OSError as e:
        if e.errno != errno.EIO or not os.path.exists(stop + ".killed"):
            raise


def user(number):
    part = area // users
    begin, known = number * part, {}
    # O_DIRECT wants pages.
    buf = mmap.mmap(-1, most)
    view = memoryview(buf)
    while not os.path.exists(stop) and not failed:
        n = random.randint(1, most // sector) * sector
        off = random.randrange((part - n) // sector + 1) * sector
        data = os.urandom(sector) * (n // sector)
        view[:n] = data
        assert os.pwritev(fd, [view[:n]], begin + off) == n
        if random.randrange(8) == 0:
            sync()
        known = {at: old for at, old in known.items()
                 if at + len(old) <= off or off + n <= at}
        known[off] = data
        for at, old in random.sample(list(known.items()), min(len(known), 2)):
            view[:len(old)] = bytes(len(old))
            assert os.preadv(fd, [view[:len(old)]], begin + at) == len(old)
            assert view[:len(old)] == old, "%d bytes at %d" % (len(old), begin + at)
        count()


def run(number):
    try:
        user(number)
    except BaseException as e:      # pylint: disable=broad-except
        failed.append(e)
        raise


threads = [threading.Thread(target=run, args=(i,)) for i in range(users)]
for t in threads:
    t.start()
for t in threads:
    t.join()
sys.exit(1 if failed else 0)
