# SPDX-License-Identifier: BSD-3-Clause
# Clients of one export that outlive their gateway, as QEMU with reconnect-delay does:
#
#	python3 nbd-soak.py SOCKET DIR CLIENTS
#
# Each client has an area of its own, and up to 16 WRITEs of 1 MiB or less in flight.  A WRITE
# without an answer is sent again when a gateway listens; an answer with an error fails the run.
# Each answered WRITE is read back, now and then and at the end.  The run ends behind the file
# DIR/stop; DIR/done counts the answers.
import array
import os
import random
import sys

import nbd

path, where, nclients = sys.argv[1], sys.argv[2], int(sys.argv[3])
SLOT, SLOTS, DEPTH = 1 << 20, 16, 16
done = 0


def content(version, at, length):
    """The data of WRITE version at this offset: no two WRITEs have a word in common."""
    first = (version << 32) + at // 8
    return bytearray(array.array('Q', range(first, first + length // 8)))


class Client:
    def __init__(self, index):
        self.base = index * SLOTS * SLOT
        self.stored = {}        # slot: (version, length) that was answered for last
        self.flying = {}        # slot: [cookie, buffer, version, length, is a write]
        # libnbd 1.14 (Debian 12) never lets a buffer go that it was given for a request, so each
        # slot has one for all its requests.
        self.bufs = [memoryview(bytearray(SLOT)) for _ in range(SLOTS)]
        self.version = index << 20
        self.handle = None      # None: no connection is begun
        self.ready = False      # requests can be sent

    def connect(self):
        """Go on with the connection, which a gateway that ends may not take."""
        try:
            if not self.handle:
                self.handle = nbd.NBD()
                self.handle.aio_connect(path)
            self.handle.poll(10)
            self.ready = self.handle.aio_is_ready()
            if self.ready:
                for slot, job in self.flying.items():
                    job[0] = self.send(slot, *job[1:])
        except nbd.Error:
            pass                    # the connection is over, or is_over() says no
        self.look()

    def look(self):
        if self.is_over():
            self.handle = None
            self.ready = False

    def send(self, slot, buf, version, length, write):
        call = self.handle.aio_pwrite if write else self.handle.aio_pread
        return call(buf, self.base + slot * SLOT)

    def begin(self, slot, write):
        if write:
            self.version += 1
            # Large ones have several parts, small ones have their data in a block of input.
            length = random.choice([SLOT, SLOT, SLOT - 512, 200 << 10, 64 << 10, 4096])
            version = self.version
            buf = self.bufs[slot][:length]
            buf[:] = content(version, slot * SLOT, length)
        else:
            version, length = self.stored[slot]
            buf = self.bufs[slot][:length]
            buf[:] = bytes(length)
        job = [None, buf, version, length, write]
        self.flying[slot] = job     # if the gateway goes now, it is sent to the next one
        job[0] = self.send(slot, *job[1:])

    def end(self, slot):
        global done
        _, buf, version, length, write = self.flying.pop(slot)
        done += 1
        if write:
            self.stored[slot] = (version, length)
        elif buf != content(version, slot * SLOT, length):
            sys.exit('slot %d of the client at %d has other data than WRITE %d' %
                     (slot, self.base, version))

    def is_over(self):
        return self.handle.aio_is_dead() or self.handle.aio_is_closed()

    def take(self):
        for slot, job in list(self.flying.items()):
            try:
                if self.handle.aio_command_completed(job[0]):
                    self.end(slot)
            except nbd.Error as e:
                if self.is_over() or e.errno == 'ENOTCONN':
                    return
                sys.exit('slot %d of the client at %d: %s' % (slot, self.base, e))

    def step(self, write):
        """Begin what is free, and take what has ended.  write: None, or whether to write."""
        try:
            free = [s for s in range(SLOTS) if s not in self.flying]
            while write is not None and free and len(self.flying) < DEPTH:
                slot = free.pop(random.randrange(len(free)))
                self.begin(slot, write or slot not in self.stored)
            self.handle.poll(10)
        except nbd.Error:
            pass                    # the connection is over, or is_over() says no
        self.take()
        self.look()


def run(clients, write):
    for c in clients:
        if c.ready:
            c.step(write())
        else:
            c.connect()
    with open(where + '/done.new', 'w') as f:
        f.write('%d\n' % done)
    os.rename(where + '/done.new', where + '/done')


clients = [Client(i) for i in range(nclients)]
while not os.path.exists(where + '/stop'):
    run(clients, lambda: random.random() < 0.7)
while any(c.flying for c in clients):
    run(clients, lambda: None)
# All that was answered is there.
for c in clients:
    while not c.ready:
        c.connect()
    for slot, (version, length) in c.stored.items():
        if c.handle.pread(length, c.base + slot * SLOT) != content(version, slot * SLOT, length):
            sys.exit('at the end slot %d of the client at %d is not WRITE %d' %
                     (slot, c.base, version))
print('%d requests were answered' % done)
