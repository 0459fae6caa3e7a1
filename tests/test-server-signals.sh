#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Signals that are sent to daemons out of habit do not end rtrs-server, even when they come together;
# behind them it serves, and SIGTERM ends it.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
for signal in HUP USR1 USR2; do
	kill -"$signal" "$server_pid"
	wait_line "$server_log" "SIG$signal: ignored"
done
# All of them wait when the thread looks.
kill -STOP "$server_pid"
kill -HUP "$server_pid"
kill -USR1 "$server_pid"
kill -TERM "$server_pid"
kill -CONT "$server_pid"
expect_exit "$server_pid" 0
wait_line "$server_log" 'SIGTERM: stopping'

# A client does not notice.
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
kill -HUP "$server_pid"
wait_line "$server_log" 'SIGHUP: ignored'
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 1048576 ]
