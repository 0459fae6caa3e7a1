#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory of connections counts in the limits of what a client can take, and goes back to the system
# when they have gone.
. ./tests/functions.sh
requires_server
requires_plain_build
requires /usr/bin/python3 --version
[ "$(ulimit -n -H)" = unlimited ] || [ "$(ulimit -n -H)" -ge 4096 ] ||
	skip "needs 4096 descriptors, the hard limit is $(ulimit -n -H)"

truncate -s 1M "$tmp/disk"

# Over a depth of 8192 a connection takes megabytes: nothing but memory keeps a host from 11 paths
# of 512, of which each opens but one.
start_server --queue-depth 8192 --max-io-size 4K "disk=$tmp/disk"
timeout $((4 * TIMEOUT_S)) /usr/bin/python3 "$top_srcdir/tests/paths.py" 127.0.0.1 127.0.0.1 \
	"$server_port" 11 1 512 </dev/null >"$tmp/deep"
grep -q refused "$tmp/deep"
wait_line "$server_log" 'connection refused: this host has reached its memory limit'
stop_server "$server_pid"

rss_kb() {
	awk '$1 == "Rss:" { print $2 }' "/proc/$server_pid/smaps_rollup"
}

rss_below() {
	[ "$(rss_kb)" -lt "$1" ]
}

start_server --setup-timeout 600 "disk=$tmp/disk"
before=$(rss_kb)
mkfifo "$tmp/stdin"
/usr/bin/python3 "$top_srcdir/tests/paths.py" 127.0.0.1 127.0.0.1 "$server_port" 2 512 512 \
	<"$tmp/stdin" >"$tmp/many" &
client=$!
exec 8>"$tmp/stdin"
wait_line "$tmp/many" '^(up|refused)$'
grep -q up "$tmp/many"
full=$(rss_kb)
exec 8>&-
expect_exit $client 0
wait_until "memory of 1024 connections" rss_below $((before + (full - before) / 10))
echo "$before KB before, $full KB with 1024 connections, $(rss_kb) KB when they have gone"
