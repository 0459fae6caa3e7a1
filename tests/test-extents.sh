#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Holes of a file are holes of the NBD export, as any client shows them, and stop being ones when
# they are written; what copies a sparse image does not read them.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version
requires nbdcopy --version
requires nbdsh --version
requires qemu-img --version
case $(stat -f -c %T "$tmp") in
ext2/ext3 | xfs | btrfs | tmpfs) ;;
*) skip "needs a file system whose holes rtrs-server knows at $tmp" ;;
esac

truncate -s 64M "$tmp/disk"
for i in 0 10 63; do
	dd if=/dev/urandom of="$tmp/disk" bs=1M count=1 seek=$i conv=notrunc status=none
done
start_server "disk=$tmp/disk" --control="$tmp/ctl"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
sync "$tmp/disk"

timeout "$TIMEOUT_S" nbdinfo --map --json "$uri" >"$tmp/map.json"
timeout "$TIMEOUT_S" qemu-img map -f raw --output=json "$uri" >"$tmp/qemu.json"
/usr/bin/python3 - "$tmp/map.json" "$tmp/qemu.json" <<'END'
import json, sys
M = 1 << 20
want = [(0, M, 0), (M, 9 * M, 3), (10 * M, M, 0), (11 * M, 52 * M, 3), (63 * M, M, 0)]
got = [(e["offset"], e["length"], e["type"]) for e in json.load(open(sys.argv[1]))]
assert got == want, got
got = [(e["start"], e["length"], 3 if e["zero"] and not e["data"] else 0) for e in json.load(open(sys.argv[2]))]
assert got == want, got
END

# The data is 3 MiB; what is read by copies, into a file and an image, is not much more.
for copy in "nbdcopy" "qemu-img convert -f raw -O raw"; do
	"$top_builddir/rtrsctl" --socket="$tmp/ctl" stats reset
	rm -f "$tmp/out"
	# shellcheck disable=SC2086
	timeout $((3 * TIMEOUT_S)) $copy "$uri" "$tmp/out"
	cmp "$tmp/disk" "$tmp/out"
	"$top_builddir/rtrsctl" --socket="$tmp/ctl" --json stats >"$tmp/stats.json"
	/usr/bin/python3 - "$tmp/stats.json" <<'END'
import json, sys
stats = json.load(open(sys.argv[1]))["exports"][0]["stats"]
assert 3 << 20 <= stats["read"]["bytes"] <= 6 << 20, stats
# To ask for holes is no IO.
assert not any(s["count"] for op, s in stats.items() if op not in ("read", "flush")), stats
END
done

# What was written and answered is data at once, in any place and by any NBD client; zeroes are
# there again after a trim.
export uri
nbdsh_run "$uri" <<'END'
import os, random

def connect():
    c = nbd.NBD()
    c.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    c.connect_uri(os.environ["uri"])
    return c

def extents(h, n, off, flags=0):
    got = []
    h.block_status(n, off, lambda metacontext, offset, e, err: got.extend(e) and 0 or 0, flags)
    return list(zip(got[::2], got[1::2]))

h, other = connect(), connect()
rand = random.Random(5)
M = 1 << 20
assert extents(h, 4096, 20 * M) == [(4096, 3)]
for i in range(300):
    off, n = rand.randrange(20 * M, 50 * M), rand.randrange(1, 9000)
    h.pwrite(b"x" * n, off)
    got = extents(other, n, off)
    assert sum(e[0] for e in got) >= n and all(e[1] == 0 for e in got), (off, n, got)
h.trim(30 * M, 20 * M)
assert extents(other, 30 * M, 20 * M) == [(30 * M, 3)]
# One, when one is asked for; from the middle of a sector.
assert extents(h, 20 * M, 12345, nbd.CMD_FLAG_REQ_ONE) == [(M - 12345, 0)]
assert extents(h, 20 * M, M - 1)[:2] == [(1, 0), (9 * M, 3)]
END
