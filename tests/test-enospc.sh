#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A full file system on the server is ENOSPC at the NBD client, for each request that needs space;
# reads and overwrites go on, and after space was made so do the writes.  "rtrsctl check" tells of
# an export whose last writes have failed, until one succeeds.
. ./tests/functions.sh
requires_server; requires_plugin; requires_root
requires nbdsh --version

mkdir "$tmp/small"
mount -t tmpfs -o size=8m tmpfs "$tmp/small" || skip "cannot mount a tmpfs here"
cleanup_umount "$tmp/small"
truncate -s 64M "$tmp/small/disk"
head -c 3M /dev/zero >"$tmp/small/ballast"
start_server "disk=$tmp/small/disk" other=mem:1M
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export ballast=$tmp/small/ballast rtrsctl=$top_builddir/rtrsctl
nbdsh_run "$uri" <<'END'
import json, os, re, subprocess

def check(status, regex):
    got = subprocess.run([os.environ["rtrsctl"], "--server", "check"], stdout=subprocess.PIPE)
    text = got.stdout.decode()
    assert got.returncode == status and re.search(regex, text), (got.returncode, text)

def failed():
    got = subprocess.run([os.environ["rtrsctl"], "--server", "--json", "show"],
                         stdout=subprocess.PIPE, check=True)
    exports = {e["name"]: e for e in json.loads(got.stdout)["exports"]}
    assert "writes_failed" not in exports["other"], exports
    return exports["disk"].get("writes_failed", {"count": 0})["count"]

h.set_strict_mode(h.get_strict_mode() & ~nbd.STRICT_ALIGN)	# as a client that ignores block_size
M = 1 << 20
h.pwrite(b"a" * M, 0)
check(0, "^RTRS OK ")

def enospc(what, call):
    must_fail(call, "ENOSPC", what + " succeeded on a full file system")

def fill():
    for i in range(1, 32):
        h.pwrite(b"b" * M, i * M)
enospc("pwrite", fill)
enospc("pwrite FUA", lambda: h.pwrite(b"c" * M, 40 * M, nbd.CMD_FLAG_FUA))
enospc("split pwrite", lambda: h.pwrite(b"c" * (16 * M), 40 * M))
enospc("pwrite unaligned", lambda: h.pwrite(b"c" * (2 * M), 50 * M + 1))
enospc("zero NO_HOLE", lambda: h.zero(16 * M, 40 * M, nbd.CMD_FLAG_NO_HOLE))
assert h.pread(M, 0) == b"a" * M
bad = "CRITICAL .*: disk fails each write: No space left on device [(][0-9]+ since [0-9]+ s[)] "
check(2, bad)
h.pwrite(b"A" * M, 0)
assert failed() == 0, failed()
check(0, "^RTRS OK ")
enospc("pwrite", lambda: h.pwrite(b"c" * 4096, 55 * M))
enospc("pwrite", lambda: h.pwrite(b"c" * 4096, 55 * M))
assert h.pread(M, 0) == b"A" * M
assert failed() == 2, failed()
check(2, bad)
assert h.pread(M, 0) == b"A" * M
os.unlink(os.environ["ballast"])
check(2, bad)
h.pwrite(b"d" * M, 48 * M)
check(0, "^RTRS OK ")
h.flush()
assert h.pread(M, 48 * M) == b"d" * M
END

# The log tells of the first of each kind, and of the rest together.
stop_process "$nbdkit_pid"
stop_process "$server_pid"
for kind in WRITE WRITE_ZEROES; do
	grep -E "error: disk: $kind of [0-9]+ bytes at byte [0-9]+ failed: No space left on device" "$server_log" >"$tmp/lines"
	[ "$(wc -l <"$tmp/lines")" -eq 1 ]
done
grep -E "error: disk: [0-9]+ more of WRITE failed, the first of them at byte [0-9]+: No space left on device" "$server_log"
must_fail grep -E "(READ|DISCARD) .*failed" "$server_log"
