#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients that write bytes, which libnbd's checks let pass: random byte ranges against a model, many
# in flight, so that read-modify-write of a sector meets other writers of the same sector.  And dd
# through nbdfuse, with blocks that are no multiple of anything.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export file=$tmp/disk
nbdsh_run "$uri" <<'END'
import os, random

assert h.get_strict_mode() & nbd.STRICT_ALIGN
SIZE = 1 << 20
seed = random.randrange(1 << 32)
print("seed", seed, flush=True)
random.seed(seed)
model = bytearray(SIZE)

# One at a time: all kinds of requests.
for i in range(1500):
    offset = random.randrange(SIZE)
    n = min(random.choice((1, 3, 511, 512, 513, 1000, 4096, 5000, 70000)), SIZE - offset)
    kind = random.randrange(5)
    if kind == 0:
        assert h.pread(n, offset) == model[offset:offset + n], (i, offset, n)
    elif kind == 1:
        h.zero(n, offset, random.choice((0, nbd.CMD_FLAG_NO_HOLE)))
        model[offset:offset + n] = bytes(n)
    else:
        data = random.randbytes(n)
        h.pwrite(data, offset, random.choice((0, 0, nbd.CMD_FLAG_FUA)))
        model[offset:offset + n] = data
assert h.pread(SIZE, 0) == model

# All at once: neighbours that share sectors but no byte.  Whatever the order, every byte counts.
for turn in range(20):
    base = random.randrange(SIZE - 65536)
    cuts = sorted({base, base + 65536} | {base + random.randrange(1, 65536) for _ in range(150)})
    ranges = list(zip(cuts, cuts[1:]))
    random.shuffle(ranges)
    cookies = []
    for a, b in ranges:
        if random.randrange(4) == 0:
            cookies.append(h.aio_zero(b - a, a))
            model[a:b] = bytes(b - a)
        else:
            data = random.randbytes(b - a)
            cookies.append(h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), a))
            model[a:b] = data
    while cookies:
        cookies = [c for c in cookies if not h.aio_command_completed(c)]
        if cookies:
            h.poll(-1)
    got = h.pread(SIZE, 0)
    if got != model:
        at = next(i for i in range(SIZE) if got[i] != model[i])
        raise SystemExit("turn %d: byte %d differs; base %d" % (turn, at, base))
h.flush()
with open(os.environ["file"], "rb") as f:
    assert f.read() == model
END

random_file "$tmp/random" $((1 << 20))
if can_fuse; then
	mkdir "$tmp/mnt"
	fuse_run "$tmp/mnt/disk" nbdfuse "$tmp/mnt/disk" "$uri"
	dd if="$tmp/random" of="$tmp/mnt/disk" bs=1000 conv=notrunc,fsync
	cmp "$tmp/random" "$tmp/disk"
	dd if="$tmp/mnt/disk" of="$tmp/back" bs=777
	cmp "$tmp/random" "$tmp/back"
	fuse_stop "$tmp/mnt" "$fuse_pid"
else
	not_run_here "dd bs=1000 of=mnt/disk" "$why"
fi
printed_commands_end
