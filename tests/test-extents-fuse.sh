#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system that does not know what was written, in user space (FUSE), says that a file is a
# hole: the server does not believe it, and copies of its export have the data.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires nbdinfo --version
requires nbdcopy --version

hole_fs 4194304
[ "$(stat -f -c %T "$tmp/mnt")" = fuseblk ] || [ "$(stat -f -c %T "$tmp/mnt")" = fuse ]

# It lies to those who ask.
head -c 4M /dev/urandom >"$tmp/data"
dd if="$tmp/data" of="$tmp/mnt/disk" bs=64K conv=notrunc status=none
cmp "$tmp/data" "$tmp/mnt/disk"
/usr/bin/python3 - "$tmp/mnt/disk" <<'END'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
try:
    os.lseek(fd, 0, os.SEEK_DATA)
    raise SystemExit("the file system does not lie")
except OSError as e:
    assert e.errno == errno.ENXIO, e
END
grep '^asked for data$' "$tmp/fuse.log"

start_server "disk=$tmp/mnt/disk,readonly"
start_nbdkit "127.0.0.1:$server_port" export=disk mode=ro
timeout "$TIMEOUT_S" nbdinfo --map --json "$uri" >"$tmp/map.json"
/usr/bin/python3 - "$tmp/map.json" <<'END'
import json, sys
got = [(e["offset"], e["length"], e["type"]) for e in json.load(open(sys.argv[1]))]
assert got == [(0, 4 << 20, 0)], got
END
timeout $((3 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/copy"
cmp "$tmp/data" "$tmp/copy"
