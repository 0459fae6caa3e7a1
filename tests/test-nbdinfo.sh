#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdinfo tells the truth about an export: size, name, read-only, flags and block sizes.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

truncate -s 64M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 67108864 ]
timeout "$TIMEOUT_S" nbdinfo --json "$uri" >"$tmp/info.json"
cat "$tmp/info.json"
/usr/bin/python3 - "$tmp/info.json" "$tmp/disk" <<'END'
import json, os, sys
e = json.load(open(sys.argv[1]))["exports"][0]
def check(name, want):
    assert e[name] == want, "%s is %r, not %r" % (name, e[name], want)
check("export-size", 67108864)
check("is_read_only", False)
check("can_cache", True)
check("can_flush", True)
check("can_fua", True)
check("can_trim", True)
check("can_zero", True)
check("can_multi_conn", True)
# The truth about the disk below, where the kernel tells it.
dev = os.stat(sys.argv[2]).st_dev
sysfs = "/sys/dev/block/%d:%d/" % (os.major(dev), os.minor(dev))
for path in (sysfs + "queue/rotational", sysfs + "../queue/rotational"):
    if os.path.exists(path):
        check("is_rotational", open(path).read() == "1\n")
        break
# Any byte; but what is no multiple of the storage's blocks, 4096 at least, costs a read for a
# write.
check("block_size_minimum", 1)
check("block_size_preferred", min(32768, max(4096, os.stat(sys.argv[2]).st_blksize)))
check("block_size_maximum", 64 << 20)
assert "disk" in e["description"], e["description"]
END
