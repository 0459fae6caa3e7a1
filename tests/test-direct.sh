#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A direct export (O_DIRECT): aligned and unaligned requests, and a file whose size is a multiple
# of 512 but not of what O_DIRECT needs.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

# /tmp may be a tmpfs, where O_DIRECT fails before Linux 6.6.
dir=$(mktemp -d /var/tmp/rtrs-test.XXXXXX)
cleanup_fn rm -rf "$dir"
size=$(((8 << 20) + 1536))
random_file "$dir/disk" $size
dd if="$dir/disk" of=/dev/null bs=4096 count=1 iflag=direct status=none ||
	skip "no O_DIRECT on the file system of $dir"
start_server "disk=$dir/disk,direct"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export file=$dir/disk
nbdsh_run "$uri" <<'END'
import os, random

model = bytearray(open(os.environ["file"], "rb").read())
size = len(model)
seed = random.randrange(1 << 32)
print("seed", seed, flush=True)
random.seed(seed)
assert h.get_size() == size
# The tail first, in all the ways it can be met.
for offset, n in ((size - 512, 512), (size - 1536, 1536), (size - 5632, 5632), (size - 1, 1),
                  (size - 1000, 700), (size - 8192 - 1536, 8192)):
    assert h.pread(n, offset) == model[offset:offset + n], (offset, n)
    data = os.urandom(n)
    h.pwrite(data, offset, nbd.CMD_FLAG_FUA)
    model[offset:offset + n] = data
    assert h.pread(size - offset, offset) == model[offset:], (offset, n)
for i in range(400):
    n = random.choice((512, 1024, 4096, 8192, 100, 65536, 1 << 20))
    offset = random.randrange(size - n)
    if random.randrange(2):
        offset &= ~4095
    if random.randrange(3) == 0:
        assert h.pread(n, offset) == model[offset:offset + n], (i, offset, n)
    elif random.randrange(4) == 0:
        h.zero(n, offset)
        model[offset:offset + n] = bytes(n)
    else:
        data = random.randbytes(n)
        h.pwrite(data, offset)
        model[offset:offset + n] = data
h.flush()
assert os.stat(os.environ["file"]).st_size == size, "the size of the file changed"
assert open(os.environ["file"], "rb").read() == model
END
