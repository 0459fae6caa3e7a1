#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NBD clients that do what they should not (nbd-hostile.py): each has its answer, or loses its
# connection with one line in the log.  Others are served meanwhile, and memory is bounded.
. ./tests/functions.sh
requires_server; requires_gateway
requires_plain_build
requires /usr/bin/python3 --version
NCLIENTS=10000
[ "$(ulimit -n -H)" = unlimited ] || [ "$(ulimit -n -H)" -gt $((NCLIENTS + 200)) ] ||
	skip "needs $NCLIENTS descriptors, the hard limit is $(ulimit -n -H)"

head -c 8M /dev/zero >"$tmp/disk"
start_server "disk=$tmp/disk"
start_gateway --memory=128M "server=127.0.0.1:$server_port" export=disk

# 128 MiB of data; 16 KB for each of 10,000 connections, and the program.
TIMEOUT_S=$TIMEOUT_S NCLIENTS=$NCLIENTS LIMIT_KB=$((128 * 1024 + 16 * NCLIENTS + 65536)) \
	timeout $((6 * TIMEOUT_S)) \
	/usr/bin/python3 "$top_srcdir/tests/nbd-hostile.py" "$sock" "$gateway_pid"

# A line names a client and the reason, and a storm of them is cut short.
cat "$gateway_log"
grep -q 'client [0-9]*: connection ends: the client has closed it in the middle of a request' \
	"$gateway_log"
[ "$(wc -l <"$gateway_log")" -lt 100 ] || fail "the log is flooded"
