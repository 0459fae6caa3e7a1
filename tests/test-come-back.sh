#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A sync fails on the server while one client has unflushed writes and loses its connections: when
# it is back its next FLUSH fails, once, and what it writes and flushes from then on is safe.
. ./tests/functions.sh
requires_server; requires_plugin; requires_root
requires nbdsh --version

# As the network would: both ends of every connection to the server are reset.  ss(8) says that it
# failed when it met a socket that it may not end; what counts is that they are gone.
reset_connections() {
	ss --kill --no-header --tcp state established "( dport = :$1 or sport = :$1 )" || true
}
connections() {
	ss --no-header --tcp --numeric state established "( dport = :$1 )" | awk '{ print $3 }' |
		sort
}

# A disk that takes no more data: a loop device on a sparse file in a full tmpfs.
mkdir "$tmp/backing"
mount -t tmpfs -o size=8m tmpfs "$tmp/backing" || skip "cannot mount a tmpfs here"
cleanup_umount "$tmp/backing"
truncate -s 32M "$tmp/backing/image"
loop=$(losetup -f --show "$tmp/backing/image") || skip "no loop device"
cleanup_fn losetup -d "$loop"

start_server "disk=$loop"
start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=ro
second=$nbdkit_pid
export second_uri=$uri fifo=$tmp/fifo
start_nbdkit "server=127.0.0.1:$server_port" export=disk
mkfifo "$fifo"
nbdsh_run "$uri" <<'END' &
import os

M = 1 << 20
for i in range(16):
    h.pwrite(b"a" * M, i * M)
# Another client's FLUSH is the first to hear of it, and is told alone.
h2 = nbd.NBD()
h2.connect_uri(os.environ["second_uri"])
must_fail(lambda: h2.flush(), "EIO ENOSPC", "flush succeeded on a disk that cannot write")
h2.shutdown()
with open(os.environ["fifo"], "w") as f:
    f.write("failed\n")
with open(os.environ["fifo"]) as f:
    f.readline()	# the connections are reset, the disk has space
must_fail(lambda: h.flush(), "EIO", "flush succeeded after a loss")
h.flush()
for i in range(16):
    h.pwrite(b"b" * M, i * M)
h.flush()
h.shutdown()
END
client=$!
read -r -t "$TIMEOUT_S" word <"$fifo"
[ "$word" = failed ]
stop_process "$second"
mount -o remount,size=64m "$tmp/backing"
connections "$server_port" >"$tmp/before"
[ -s "$tmp/before" ]
reset_connections "$server_port"
[ -z "$(connections "$server_port" | comm -12 "$tmp/before" -)" ] ||
	skip "ss --kill cannot end connections here"
echo reset >"$fifo"
expect_exit $client 0
# Beside the session that tried it at the start.
[ "$(grep "device 0 opened: disk, rw" "$server_log" | grep -c -v -e '-probe: ')" -gt 1 ]
# On the disk, not in the page cache of the loop device.
cmp -n $((16 << 20)) "$tmp/backing/image" <(head -c 16M /dev/zero | tr '\0' b)
