#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients that say nothing: each waits for a time-out of the server, half a minute in all.
. ./tests/functions.sh
[ -n "${SLOW_TESTS-}" ] || skip "takes half a minute: set SLOW_TESTS=yes (check.sh --full does)"
requires_server

random_file "$tmp/good" $((1 << 20))
start_server "good=$tmp/good"
ASAN_OPTIONS=detect_leaks=0 ./tests/hostile/hostile --slow --server="127.0.0.1:$server_port" \
	--pid="$server_pid" --log="$server_log" --timeout="$TIMEOUT_S"
