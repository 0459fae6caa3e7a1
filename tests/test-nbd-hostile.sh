#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NBD clients that take no answers, and ten thousand at once (nbd-hostile.py): others are served
# meanwhile, and memory is bounded.  Requests and options that are wrong: unit/test-nbd-opt.c and
# test-nbd-server.c, nbd-limits.py.
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

# A storm of lines is cut short.
cat "$gateway_log"
[ "$(wc -l <"$gateway_log")" -lt 100 ] || fail "the log is flooded"
