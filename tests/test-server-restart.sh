#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The server is killed (SIGKILL) and started again under a load that verifies, three times: the
# client sees a pause, no error, and all data is right.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd

truncate -s 32M "$tmp/disk"
start_server "disk=$tmp/disk"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$TIMEOUT_S"

cd "$tmp" || exit
load() {
	timeout $((4 * TIMEOUT_S)) fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite \
		--bs=4k --size=32M --iodepth=16 --verify=crc32c \
		--verify_state_save=0 --verify_fatal=1 --verify_dump=0 \
		--verify_backlog=256 --time_based --runtime=12 --randrepeat=0 --eta=never
}
load >"$tmp/fio.log" 2>&1 &
fio=$!
# IO is going on: the file's time of change moves (by ticks of the kernel's clock).
for turn in 1 2 3; do
	wait_for_writes "writes before kill $turn" "$tmp/disk"
	kill_process "$server_pid"
	start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
done
wait_for_writes "writes after the last restart" "$tmp/disk"
expect_exit $fio 0
grep -q 'err= 0' "$tmp/fio.log"
