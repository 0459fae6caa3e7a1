#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Readers of metrics that send halves of requests, garbage, nothing, by the thousand, and do not
# read: the next one gets its answer, and the IO of others goes on and is right.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd
requires /usr/bin/python3 --version

truncate -s 32M "$tmp/disk"
start_server --metrics 0 "disk=$tmp/disk"
wait_line "$server_log" ' metrics: '
port=$(sed -n 's,.* metrics: .*:\([0-9]*\)/metrics,\1,p' "$server_log")
start_nbdkit "server=127.0.0.1:$server_port" export=disk "metrics=unix:$tmp/metrics.sock" \
	heartbeat=500 heartbeat-misses=20

# fio ends when the hostile readers have.
touch "$tmp/busy"
verify() {
	cd "$tmp" || return
	while [ -e "$tmp/busy" ]; do
		timeout $((4 * TIMEOUT_S)) fio --name=verify --ioengine=nbd --uri="$uri" \
			--rw=randwrite \
			--bs=4k --size=16M --iodepth=16 --verify=crc32c --verify_state_save=0 \
			--verify_fatal=1 --verify_dump=0 --randrepeat=0 || return
	done
}
verify >"$tmp/fio.log" 2>&1 &
fio=$!
# The readers of the client count descriptors, which those of NBD would disturb: both are there.
wait_until "IO" grep -q verify "$tmp/fio.log"
export TIMEOUT_S
hostile=$top_srcdir/tests/metrics-hostile.py
/usr/bin/python3 "$hostile" "$server_pid" "$port"
/usr/bin/python3 "$hostile" "$nbdkit_pid" "$tmp/metrics.sock"
rm "$tmp/busy"
wait "$fio" || { cat "$tmp/fio.log"; fail "IO failed meanwhile"; }
must_fail grep -E 'path .*(lost|failed)' "$nbdkit_log"
