#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --invalidate=always: copies of odd sizes, two clients with checksums, O_DIRECT, errors, a client
# that is killed, connections that are lost and a server that is killed with requests in flight.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdcopy --version
requires fio --enghelp=nbd

serve() {
	start_server "$@" --invalidate=always --log-level=debug --threads=3 --queue-depth=24 \
		"disk=$tmp/disk" "ro=$tmp/ro,readonly" "direct=$tmp/direct,direct"
}
verify() {
	(cd "$tmp" &&
		timeout $((4 * TIMEOUT_S)) fio --ioengine=nbd --verify=crc32c \
			--verify_state_save=0 \
		--verify_fatal=1 --verify_dump=0 --randrepeat=0 "$@")
}
# The last path says how many keys it gave and took: all of what it served, and a new one for each.
keys_were_used() {
	sed -n 's/.*keys: \([0-9]*\) given, \([0-9]*\) taken away.*/\1 \2/p' "$server_log" |
		sort -n |
		tail -n 1 | { read -r given taken; [ "$taken" -gt "$1" ] &&
		[ "$given" -ge "$taken" ]; } ||
		fail "keys were not taken away"
}

truncate -s 48M "$tmp/disk" "$tmp/direct"
random_file "$tmp/ro" $((4 << 20))
serve

echo "== nbdcopy, a tail of 512 bytes"
random_file "$tmp/image" $(((20 << 20) + 512))
start_nbdkit "server=127.0.0.1:$server_port" export=disk
timeout $((3 * TIMEOUT_S)) nbdcopy --flush --connections=4 "$tmp/image" "$uri"
cmp -n $(((20 << 20) + 512)) "$tmp/image" "$tmp/disk"
timeout $((3 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/out"
cmp "$tmp/out" "$tmp/disk"

echo "== two clients"
one=$uri
start_nbdkit "server=127.0.0.1:$server_port" export=direct
verify --name=direct --uri="$uri" --rw=randwrite --bs=8k --size=16M --iodepth=32 &
pid=$!
verify --name=mixed --uri="$one" --rw=randwrite --bsrange=512-256k --bs_unaligned=0 \
	--blockalign=512 \
	--size=32M --iodepth=32
expect_exit $pid 0
stop_process "$nbdkit_pid"

echo "== errors"
start_nbdkit "server=127.0.0.1:$server_port" export=ro mode=ro
nbdsh_run "$uri" <<'END'
h.set_strict_mode(0)
# Refused again and again: each answer gives the chunk its next key.
for i in range(100):
    must_fail(lambda: h.pwrite(b"x" * 512, 0), None, "a read-only export was written to")
    h.pread(3 * 512, i * 512)
END
timeout $((3 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/out"
cmp "$tmp/out" "$tmp/ro"
stop_process "$nbdkit_pid"
# One that the server itself refuses: the file has become shorter than the export.
start_nbdkit "server=127.0.0.1:$server_port" export=direct
truncate -s 8M "$tmp/direct"
nbdsh_run "$uri" <<'END'
for i in range(100):
    must_fail(lambda: h.pread(4096, (16 << 20) + i * 4096), None, "read behind the end of a file")
    h.pread(4096, i * 4096)
END
stop_process "$nbdkit_pid"
truncate -s 48M "$tmp/direct"

echo "== a client that is killed"
for turn in 1 2 3; do
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	timeout $((4 * TIMEOUT_S)) fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite \
		--bs=64k \
		--size=32M --iodepth=16 --time_based --runtime=60 --eta=never >"$tmp/fio$turn.log" \
		2>&1 &
	pid=$!
	wait_for_writes "writes" "$tmp/disk"
	kill_process "$nbdkit_pid"
	wait $pid || true	# it has lost its server
done

echo "== a server that is killed"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$TIMEOUT_S"
for turn in 1 2 3; do
	verify --name=killed --uri="$uri" --rw=randwrite --bs=4k --size=32M --iodepth=32 \
		--verify_backlog=64 \
		--time_based --runtime=2 &
	pid=$!
	wait_for_writes "writes" "$tmp/disk"
	kill_process "$server_pid"
	serve --listen "tcp://127.0.0.1:$port"
	wait_line "$server_log" "path up"
	expect_exit $pid 0
done
stop_process "$nbdkit_pid"
stop_process "$server_pid"
# In valgrind there is time for few.
keys_were_used 0
# Nobody has broken a rule here.
must_fail grep -h 'key cannot be revoked\|used twice\|cannot give\|stale key' "$tmp"/server*.log
