#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TRIM on file systems in user space: one that punches holes, but answers ENOSPC behind the end of
# the file (nbdfuse), and one that punches none, which the log says.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin
requires nbdsh --version
can_fuse || skip "$why"

mkdir "$tmp/nbd"
fuse_run "$tmp/nbd/disk" nbdfuse "$tmp/nbd/disk" --command nbdkit --single memory 16M
must_fail fallocate -p -n -o 16M -l 4096 "$tmp/nbd/disk"
start_server "disk=$tmp/nbd/disk"
must_fail grep "no TRIM" "$server_log"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
nbdsh_run "$uri" <<'END'
assert h.can_trim()
h.pwrite(b"x" * 65536, 0)
h.trim(32768, 0)
got = h.pread(65536, 0)
assert got == bytes(32768) + b"x" * 32768
END
stop_process "$nbdkit_pid"
stop_process "$server_pid"

[ -w /dev/fuse ] && [ "$(id -u)" -eq 0 ] ||
	skip "all passed but a file system without holes, which needs root"
truncate -s 16M "$tmp/file"
held_fs "$tmp/file"
start_server "disk=$tmp/mnt/disk"
grep "info: disk: exports .*; no TRIM: the storage does not support discard" "$server_log"
