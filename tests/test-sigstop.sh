#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A server that stands still for a moment (SIGSTOP, SIGCONT) is a pause for the client; one that
# stands still for longer than the heartbeats allow is too, since its path is made anew.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd

truncate -s 32M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk io-timeout=$((2 * TIMEOUT_S))

cd "$tmp" || exit
timeout $((4 * TIMEOUT_S)) fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite --bs=4k \
	--size=32M --iodepth=16 --verify=crc32c --verify_state_save=0 --verify_fatal=1 \
	--verify_dump=0 \
	--verify_backlog=256 --time_based --runtime=8 --randrepeat=0 --eta=never \
	>"$tmp/fio.log" 2>&1 &
fio=$!
mtime() { stat -c %y "$tmp/disk"; }
moved() { [ "$(mtime)" != "$1" ]; }
for turn in 1 2 3; do
	wait_until "writes before stop $turn" moved "$(mtime)"
	stop_all_threads "$server_pid"
	sleep 0.$turn		# how long it stands still is the input of this test
	kill -CONT "$server_pid"
done
expect_exit $fio 0
grep -q 'err= 0' "$tmp/fio.log"
