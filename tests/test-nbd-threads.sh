#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-nbd on four threads: eight clients write and verify at once while the server is killed and
# comes back, and SIGTERM ends all threads.
. ./tests/functions.sh
requires_server; requires_gateway
requires fio --enghelp=nbd
requires nbdinfo --version

truncate -s 64M "$tmp/disk"
start_server "disk=$tmp/disk"
port=$server_port
start_gateway --threads=4 "server=127.0.0.1:$port"
[ "$(cat "/proc/$gateway_pid/task/"*/comm | grep -c '^rtrs-io$')" -eq 3 ] ||
	fail "three threads beside the service thread: $(cat "/proc/$gateway_pid/task/"*/comm)"

# Without an export of its own each client asks for one, or for the list, on its thread.
for _ in 1 2 3 4; do
	timeout "$TIMEOUT_S" nbdinfo --list "$uri" >"$tmp/list"
	grep -q '^export="disk"' "$tmp/list" ||
		{ cat "$tmp/list"; fail "the export is not listed"; }
done

cd "$tmp" || exit
fio --ioengine=nbd --uri="nbd+unix:///disk?socket=$sock" --name=jobs \
	--rw=randwrite --bsrange=512-128k --bs_unaligned=0 --blockalign=512 --size=8M \
	--offset_increment=8M --numjobs=8 --iodepth=8 --rate=4M --verify=crc32c --loops=100000 \
	--verify_state_save=0 --verify_fatal=1 --verify_dump=0 --randrepeat=0 \
	>"$tmp/fio.log" 2>&1 &
fio_pid=$!
cd - >/dev/null || exit

# on_disk MEGABYTES
on_disk() {
	[ "$(stat -c %b "$tmp/disk")" -gt $(($1 * 2048)) ] || process_ended "$fio_pid"
}
for megabytes in 8 20 32; do
	wait_until "more data on the disk" on_disk $megabytes
	process_ended "$fio_pid" && fail "fio has ended too early: $(cat "$tmp/fio.log")"
	kill_process "$server_pid"
	start_server --listen "tcp://127.0.0.1:$port" --control "$tmp/server.ctl" "disk=$tmp/disk"
done
# Each loop of a client ends with its reads: all have one after the last kill.
has_read() {
	"$top_builddir/rtrsctl" --socket "$tmp/server.ctl" --json stats >"$tmp/stats" || return
	with_json '
disk, = a["exports"]
sys.exit(disk["stats"]["read"]["bytes"] < 2 * 64 << 20)' <"$tmp/stats"
}
read_or_ended() { process_ended "$fio_pid" || has_read; }
wait_until "the reads of two loops" read_or_ended
kill -INT "$fio_pid"			# what fio of all releases ends in good order at
expect_exit "$fio_pid" 128
[ "$(grep -c 'err= 0' "$tmp/fio.log")" -eq 8 ]
! grep -q -i 'verify:\|error' "$tmp/fio.log" || { cat "$tmp/fio.log"; fail "fio complains"; }

stop_process "$gateway_pid"
[ ! -e "$sock" ] || fail "the socket is still there"
