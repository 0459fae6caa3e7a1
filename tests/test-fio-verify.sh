#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fio's nbd engine writes and verifies, many requests deep, several jobs at once.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd

truncate -s 64M "$tmp/disk"
start_server --control "$tmp/control" "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

cd "$tmp" || exit
run() {
	timeout $((4 * TIMEOUT_S)) fio --ioengine=nbd --uri="$uri" --verify=crc32c \
		--verify_state_save=0 \
		--verify_fatal=1 --verify_dump=0 --randrepeat=0 "$@"
}
run --name=small --rw=randwrite --bs=4k --size=32M --iodepth=32
run --name=mixed --rw=randwrite --bsrange=512-256k --bs_unaligned=0 --blockalign=512 --size=48M \
	--iodepth=16
run --name=jobs --rw=randwrite --bs=8k --size=16M --offset_increment=16M --numjobs=4 --iodepth=8 \
	--fsync=32
# Deeper than what rtrs-nbd takes at once from a connection.  The server is slow with writes, so
# that all that fio has in flight wait.
timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control" \
	export set disk iops-write=1000
for depth in 1 64 256 257 512; do
	run --name=depth$depth --rw=randwrite --bs=60k --size=60M --iodepth=$depth
done
