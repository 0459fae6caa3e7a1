#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# registration=: each read gets a memory window that the server takes away with its answer, or
# (static) memory of ours under a key that stays.  Copies, one request of 64 MiB, data that is
# verified while the server is killed and started again, and a server that stays away.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdcopy --version
requires fio --enghelp=nbd

random_file "$tmp/image" $((64 << 20))

# counted FIELD: of all lives of the path, from the last nbdkit's log.
counted() {
	sed -n 's/.*windows: //p' "$nbdkit_log" | grep -o -E "[0-9]+ $1" |
		awk '{ sum += $1 } END { print sum + 0 }'
}

copies() {
	timeout $((3 * TIMEOUT_S)) nbdcopy --flush "$tmp/image" "$uri"
	cmp "$tmp/image" "$tmp/disk"
	rm -f "$tmp/out"
	timeout $((3 * TIMEOUT_S)) nbdcopy --connections=4 --requests=64 --request-size=65536 \
		"$uri" "$tmp/out"
	cmp "$tmp/image" "$tmp/out"
	IMAGE=$tmp/image nbdsh_run "$uri" <<'END'
import os
h.set_strict_mode(0)
data = open(os.environ["IMAGE"], "rb").read()
assert h.pread(len(data), 0) == data, "64 MiB"
for n in 1, 511, 513, 4097, (1 << 20) + 7:
    assert h.pread(n, 1000003) == data[1000003:1000003 + n], n
END
}

restarts() {
	local fio turn

	# Until it is told to end: how long the restarts take is the machine's.
	(cd "$tmp" && exec timeout $((8 * TIMEOUT_S)) fio --name=load --ioengine=nbd --uri="$uri" \
		--rw=randrw --bsrange=4k-64k --size=32M --iodepth=16 --verify=crc32c \
		--verify_state_save=0 --verify_fatal=1 --verify_dump=0 --verify_backlog=64 \
		--loops=1000000 --randrepeat=0 --eta=never) >"$tmp/fio.log" 2>&1 &
	fio=$!
	for turn in 1 2; do
		wait_for_writes "writes before kill $turn" "$tmp/disk"
		kill_process "$server_pid"
		start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
	done
	wait_for_writes "writes after the last restart" "$tmp/disk"
	# timeout of coreutils 9.10 keeps a SIGINT that its shell ignores, as in the background.
	pkill -INT -P "$fio"
	# What fio ends with when it was told to, and all was well.
	TIMEOUT_S=$((3 * TIMEOUT_S)) expect_exit $fio 128
	grep -q 'err= 0' "$tmp/fio.log"
}

# Reads in flight and later ones fail when nobody comes back in time; then all is well again.
stays_away() {
	stop_process "$nbdkit_pid"
	start_nbdkit -v -- "server=127.0.0.1:$port" export=disk registration="$1" io-timeout=1
	SERVER=$server_pid nbdsh_run "$uri" <<'END'
import os, select, signal
server = os.pidfd_open(int(os.environ["SERVER"]))
cookies = [h.aio_pread(nbd.Buffer(1 << 20), i << 20) for i in range(16)]
signal.pidfd_send_signal(server, signal.SIGKILL)
select.select([server], [], [])		# its last thread has ended
for cookie in cookies:
    try:
        while not h.aio_command_completed(cookie):
            h.poll(-1)
    except nbd.Error as ex:
        assert ex.errno == "EIO", ex
try:
    h.pread(4096, 0)
    assert False, "a read without a server"
except nbd.Error as ex:
    assert ex.errno == "EIO", ex
END
	kill_process "$server_pid"
	start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
	wait_until "reads when it is back" timeout "$TIMEOUT_S" nbdsh -u "$uri" \
		-c 'h.pread(1 << 20, 0)'
}

for registration in window static; do
	truncate -s 64M "$tmp/disk"
	start_server "disk=$tmp/disk"
	port=$server_port
	start_nbdkit -v -- "server=127.0.0.1:$port" export=disk registration=$registration \
		"io-timeout=$TIMEOUT_S"
	wait_line "$nbdkit_log" \
		"registration=$registration: (a window of type 2 for each read|static)\$"
	copies
	restarts
	all=$nbdkit_log
	stays_away $registration
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
	nbdkit_log=$all
	if [ $registration = window ]; then
		[ "$(counted bound)" -gt 1000 ]
		[ "$(counted 'invalidated by the server')" -gt 1000 ]
		[ "$(counted 'by us')" -eq 0 ]
		[ "$(counted missing)" -eq 0 ]
	else
		must_fail grep 'windows: ' "$nbdkit_log"
	fi
	rm "$tmp/disk"
done
