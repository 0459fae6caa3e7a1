# SPDX-License-Identifier: BSD-3-Clause
# Load for nbdsh, with h connected: sixteen writes at a time all over the first 32 MiB, read back
# and compared, until the file $STOP exists.  An error or other data ends it with another status
# than 0.  $STOP.turns counts.
import os, random
stop, turns = os.environ["STOP"], 0
area, most = 32 << 20, 64 << 10
# libnbd 1.14 (Debian 12) never lets a buffer go that it was given for a request.
bufs = [memoryview(bytearray(most)) for _ in range(16)]
while not os.path.exists(stop):
    parts = []
    for k in range(16):
        n = random.randint(1, most // 512) * 512
        off = k * (area // 16) + random.randrange((area // 16 - n) // 512) * 512
        parts.append((off, os.urandom(n)))
    for what in "write", "read":
        jobs = []
        for whole, (off, data) in zip(bufs, parts):
            buf = whole[:len(data)]
            if what == "write":
                buf[:] = data
                jobs.append((h.aio_pwrite(buf, off), buf, off, data))
            else:
                buf[:] = bytes(len(data))
                jobs.append((h.aio_pread(buf, off), buf, off, data))
        flying = [job[0] for job in jobs]
        while flying := [cookie for cookie in flying if not h.aio_command_completed(cookie)]:
            h.poll(-1)
        for _, buf, off, data in jobs:
            assert buf == data, "%s at %d of %d" % (what, off, len(data))
    turns += 1
    with open(stop + ".turns.new", "w") as f:
        f.write(str(turns))
    os.rename(stop + ".turns.new", stop + ".turns")
