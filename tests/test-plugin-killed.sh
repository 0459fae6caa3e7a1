#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit is killed (SIGKILL) with writes in flight: the server frees the session and the next writer
# gets the export at once.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd

truncate -s 32M "$tmp/disk"
start_server "disk=$tmp/disk"
descriptors() { find "/proc/$server_pid/fd" -type l | wc -l; }
before=$(descriptors)
no_more_than_before() { [ "$(descriptors)" -le "$before" ]; }
mtime() { stat -c %y "$tmp/disk"; }
moved() { [ "$(mtime)" != "$1" ]; }
cd "$tmp" || exit
for turn in 1 2 3; do
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	timeout $((4 * TIMEOUT_S)) fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite \
		--bs=64k --size=32M --iodepth=16 --time_based --runtime=60 --eta=never \
		>"$tmp/fio$turn.log" 2>&1 &
	fio=$!
	wait_until "writes" moved "$(mtime)"
	kill_process "$nbdkit_pid"
	# fio has lost its server.
	wait $fio || true
done
start_nbdkit "server=127.0.0.1:$server_port" export=disk
nbdsh_run "$uri" <<'END'
h.pwrite(b"z" * 4096, 0)
assert h.pread(4096, 0) == b"z" * 4096
END
stop_process "$nbdkit_pid"
# Nothing of the dead sessions is left: as many descriptors as before the first.
wait_until "the descriptors of dead sessions to be closed" no_more_than_before
