#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The gateway's socket as a disk of QEMU: its block layer, with a format and a cache in between,
# does IO for a client of its own, as for the disk of a guest.
. ./tests/functions.sh
requires_server; requires_plugin
requires qemu-storage-daemon --version
requires qemu-io --version
requires qemu-img --version

truncate -s 64M "$tmp/disk"
start_server disk="$tmp/disk"
start_nbdkit 127.0.0.1:"$server_port" export=disk
qemu-img create -q -f qcow2 "$uri" 48M

start_daemon() {
	rm -f "$tmp/qsd.pid"
	qemu-storage-daemon --pidfile "$tmp/qsd.pid" \
		--blockdev \
		driver=nbd,node-name=net,server.type=unix,server.path="$sock",discard=unmap \
		--blockdev driver=qcow2,node-name=disk,file=net,discard=unmap \
		--nbd-server addr.type=unix,addr.path="$tmp/qsd.sock" \
		--export type=nbd,id=disk,node-name=disk,name=disk,writable=on >"$tmp/qsd.log" \
		2>&1 &
	daemon=$!
	cleanup_fn stop_process $daemon
	wait_until "qemu-storage-daemon" nbdkit_ready_or_ended $daemon "$tmp/qsd.pid"
}

# io COMMAND...: of qemu-io, on the disk.  It says what went wrong and goes on with status 0.
io() {
	local command args=()

	for command in "$@"; do
		args+=(-c "$command")
	done
	timeout "$TIMEOUT_S" qemu-io -f raw "${args[@]}" "nbd+unix:///disk?socket=$tmp/qsd.sock" \
		>"$tmp/io.out" 2>&1 || fail "qemu-io: $(cat "$tmp/io.out")"
	cat "$tmp/io.out"
	must_fail grep -q -i -E 'fail|error|mismatch' "$tmp/io.out"
}

start_daemon
io 'write -P 1 0 8M' 'write -P 2 8191k 3k' 'aio_write -P 3 16M 4M' 'aio_write -P 4 20M 4M' \
	aio_flush \
	'discard 4M 1M' 'write -z 24M 1M' flush
io 'read -P 1 0 4M' 'read -P 1 5M 3071k' 'read -P 2 8191k 3k' 'read -P 3 16M 4M' \
	'read -P 4 20M 4M' \
	'read -P 0 4M 1M' 'read -P 0 24M 1M' 'read -P 0 40M 8M'
stop_process $daemon
qemu-img check -q -f qcow2 "$uri"

# What it wrote is there for the next one.
start_daemon
io 'read -P 1 0 4M' 'read -P 2 8191k 3k' 'read -P 3 16M 4M' 'read -P 4 20M 4M'
stop_process $daemon
