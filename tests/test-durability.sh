#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# FLUSH and FUA reach the storage: on a disk whose writes fail, they fail, while plain writes (page
# cache) do not.  A failed sync stays known until the export is opened anew by a sole user.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires nbdsh --version
requires mke2fs -V

ext4_in_tmpfs 40m 96M 64M "$tmp/mnt" -O ^has_journal -E lazy_itable_init=0,nodiscard
fill() { head -c 64M /dev/zero >"$tmp/backing/ballast" 2>/dev/null || true; }

for how in flush fua; do
	start_server "disk=$tmp/mnt/disk"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=migration
	second=$nbdkit_pid
	export second_uri=$uri
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	first=$nbdkit_pid
	export how fifo=$tmp/$how.fifo
	mkfifo "$fifo"
	nbdsh_run "$uri" <<'END' &
import os

M = 1 << 20
def error(what, call):
    must_fail(call, "EIO ENOSPC", what + " succeeded on a disk that cannot write")

h.pwrite(os.urandom(M), 0, nbd.CMD_FLAG_FUA)
h.flush()
with open(os.environ["fifo"], "w") as f:
    f.write("healthy\n")
with open(os.environ["fifo"]) as f:
    f.readline()	# the disk is full
if os.environ["how"] == "flush":
    for i in range(16, 32):
        h.pwrite(os.urandom(M), i * M)
    error("flush", h.flush)
else:
    error("pwrite FUA", lambda: [h.pwrite(os.urandom(M), i * M, nbd.CMD_FLAG_FUA)
                               for i in range(32, 48)])
# The kernel tells once; the server goes on telling.
error("second flush", h.flush)
error("second FUA", lambda: h.pwrite(b"x" * 512, 0, nbd.CMD_FLAG_FUA))
assert len(h.pread(M, 0)) == M
# Neither does another session, while this one has the export open.
h2 = nbd.NBD()
h2.connect_uri(os.environ["second_uri"])
error("flush of another session", h2.flush)
h.shutdown()
h2.shutdown()
END
	client=$!
	read -r -t "$TIMEOUT_S" word <"$fifo"
	[ "$word" = healthy ]
	fill
	echo full >"$fifo"
	expect_exit $client 0

	stop_process "$second"
	stop_process "$first"

	# Space again: what is opened anew, by a sole user, is healthy.
	rm "$tmp/backing/ballast"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	nbdsh_run "$uri" <<'END'
import os
h.pwrite(os.urandom(1 << 20), 0, nbd.CMD_FLAG_FUA)
h.flush()
END
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
done
