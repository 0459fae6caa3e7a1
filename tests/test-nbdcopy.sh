#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdcopy in and out: one connection and several, small and large requests, holes included.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdcopy --version

# Data, a hole, zeroes, and a tail that is no multiple of 4096.
random_file "$tmp/image" $((24 << 20))
truncate -s $((56 << 20)) "$tmp/image"
head -c $((2 << 20)) /dev/zero >>"$tmp/image"
random_file "$tmp/tail" $(((5 << 20) + 512))
cat "$tmp/tail" >>"$tmp/image"
size=$(stat -c %s "$tmp/image")

copy() {
	truncate -s 0 "$tmp/disk"
	# What was there before must not shine through where the image has holes.
	head -c "$size" /dev/urandom >"$tmp/disk"
	start_server "disk=$tmp/disk"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	timeout $((3 * TIMEOUT_S)) nbdcopy --flush "$@" -- "$tmp/image" "$uri"
	cmp "$tmp/image" "$(stored "$tmp/disk")"
	rm -f "$tmp/out"
	timeout $((3 * TIMEOUT_S)) nbdcopy "$@" -- "$uri" "$tmp/out"
	cmp "$tmp/image" "$tmp/out"
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
}

copy
copy --connections=1 --requests=1
copy --connections=8 --requests=64 --request-size=65536
copy --request-size=33554432
copy --synchronous
copy --allocated
