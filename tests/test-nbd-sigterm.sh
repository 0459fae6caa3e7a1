#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-nbd ends while QEMU reads and writes: QEMU connects to the next one, and no request fails.
. ./tests/functions.sh
requires_server; requires_gateway
requires qemu-io --version

truncate -s 16M "$tmp/disk"
start_server "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk
first=$gateway_pid first_sock=$sock

mkfifo "$tmp/commands"
timeout 120 qemu-io --image-opts \
	"driver=nbd,server.type=unix,server.path=$sock,export=disk,reconnect-delay=60" \
	<"$tmp/commands" >"$tmp/qemu-io.log" 2>&1 &
qemu_pid=$!
exec 8>"$tmp/commands"
echo 'write -P 1 0 64k' >&8
wait_line "$tmp/qemu-io.log" 'wrote 65536/65536'
for i in {1..200}; do
	echo "aio_write -P $i $((i * 64))k 64k"
done >&8
stop_process "$first"
grep -q . "$gateway_log" && fail "it says something: $(cat "$gateway_log")"

"$RTRS_NBD" -f -U "$sock" -P "$tmp/next.pid" "server=127.0.0.1:$server_port" export=disk \
	</dev/null >"$tmp/next.log" 2>&1 8>&- &
next_pid=$!
cleanup_fn stop_process "$next_pid"
wait_until "the next rtrs-nbd" nbdkit_ready_or_ended "$next_pid" "$tmp/next.pid"
{
	echo aio_flush
	for i in {1..200}; do
		echo "read -P $i $((i * 64))k 64k"
	done
	echo quit
} >&8
exec 8>&-
expect_exit "$qemu_pid" 0
grep -i -E 'failed|error' "$tmp/qemu-io.log" && fail "a request failed"
[ "$(grep -c 'wrote 65536/65536' "$tmp/qemu-io.log")" -eq 201 ]
[ "$(grep -c 'read 65536/65536' "$tmp/qemu-io.log")" -eq 200 ]

# A reload that comes while rtrs-nbd ends does not break off the end: what is in flight is answered.
# The path is not lost meanwhile, however busy the machine is.
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/ctl" \
	heartbeat=10000 heartbeat-misses=6
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/ctl")
mkfifo "$tmp/reads"
timeout 60 qemu-io --image-opts "driver=nbd,server.type=unix,server.path=$sock,export=disk" \
	<"$tmp/reads" >"$tmp/reads.log" 2>&1 &
reader_pid=$!
exec 8>"$tmp/reads"
echo 'read -P 1 64k 4k' >&8
wait_line "$tmp/reads.log" 'read 4096/4096'
stop_all_threads "$server_pid"
echo 'read -P 2 128k 4k' >&8
in_flight() { "${ctl[@]}" --json clients | grep -q '"inflight":1'; }
wait_until "a request in flight" in_flight
kill -TERM "$gateway_pid"
ends() { { "${ctl[@]}" clients 2>&1 || true; } | grep -q 'serves no NBD clients now'; }
wait_until "the end to begin" ends
kill -HUP "$gateway_pid"
kill -CONT "$server_pid"
expect_exit "$gateway_pid" 0
stopped="$stopped$gateway_pid "
echo quit >&8
exec 8>&-
wait "$reader_pid" || true
[ "$(grep -c 'read 4096/4096' "$tmp/reads.log")" -eq 2 ] || fail "the last request has no answer"
sock=$first_sock

# A server that is away: what is in flight gets no answer, and rtrs-nbd ends.
stop_all_threads "$server_pid"
timeout 60 qemu-io --image-opts "driver=nbd,server.type=unix,server.path=$sock,export=disk" \
	-c 'read 0 4k' >"$tmp/away.log" 2>&1 &
away_pid=$!
kill -TERM "$next_pid"
expect_exit "$next_pid" 0
stopped="$stopped$next_pid "
kill -CONT "$server_pid"
wait "$away_pid" || true
