#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# CACHE through nbdkit reads the whole range, in pieces, and each request has memory of its own: with
# ThreadSanitizer requests that share memory are a race, and the pieces show in nbdkit's size.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

truncate -s 80M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
kib() { awk "/^$1:/ { print \$2 }" "/proc/$nbdkit_pid/status"; }

nbdsh_run "$uri" <<<'h.pread(1 << 20, 0)'
before=$(kib VmRSS)
nbdsh_run "$uri" <<'END'
M = 1 << 20
h.set_strict_mode(0)
asked = [h.aio_cache(n, offset) for n, offset in (
    (66 * M, 0), (66 * M + 1, 13), (40 * M + 17, 4096 - 3), (3, 80 * M - 3), (1, 0), (M, 5 * M))]
while asked:
    h.poll(-1)
    asked = [cookie for cookie in asked if not h.aio_command_completed(cookie)]
END
# A buffer for the largest request would be 64 MiB.  A sanitizer has memory of its own.
after=$(kib VmHWM)
[ "$SANITIZERS${VALGRIND_TESTS-}" != no ] ||
	[ $((after - before)) -lt $((32 << 10)) ] ||
	fail "VmRSS was $before KiB, then up to $after KiB"

# Only the last piece is beyond the end of a file that has shrunk.
file=$tmp/disk nbdsh_run "$uri" <<'END'
import os

M = 1 << 20
os.truncate(os.environ["file"], 79 * M + 4096)
h.cache(70 * M, 9 * M)
try:
    h.cache(70 * M, 10 * M)
except nbd.Error as e:
    assert e.errno == "EIO", e
else:
    raise SystemExit("a CACHE of data that cannot be read succeeded")
END
grep "export 'disk': cache of 73400320 bytes at 10485760: Input/output error" "$nbdkit_log"
