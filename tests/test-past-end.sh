#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Requests past the end fail and change nothing; the last bytes of the device work.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

size=$(((1 << 20) + 512))
random_file "$tmp/disk" $size
cp "$tmp/disk" "$tmp/before"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

nbdsh_run "$uri" <<'END'
size = (1 << 20) + 512
assert h.get_size() == size
h.set_strict_mode(0)

def refused(what, errnos, call):
    must_fail(call, errnos, what + " past the end succeeded")

for offset, n in ((size, 1), (size, 512), (size - 1, 2), (size - 512, 513), (1 << 40, 512),
                  ((1 << 63) - 512, 512), (0, size + 1)):
    refused("pread", "EINVAL", lambda: h.pread(n, offset))
    refused("pwrite", "ENOSPC EINVAL", lambda: h.pwrite(b"x" * n, offset))
    refused("zero", "ENOSPC EINVAL", lambda: h.zero(n, offset))
    refused("trim", "EINVAL", lambda: h.trim(n, offset))
    refused("cache", "EINVAL", lambda: h.cache(n, offset))

for n in (1, 511, 512, 513, 4096):
    data = h.pread(n, size - n)
    h.pwrite(data, size - n)
h.flush()
END
cmp "$tmp/before" "$tmp/disk"
