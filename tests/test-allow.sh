#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --allow: a client from elsewhere is refused, told apart in the server's log, and one inside gets
# in.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

truncate -s 1M "$tmp/disk" "$tmp/other"
start_server --allow 127.0.0.2/32 --allow 192.0.2.0/24 --allow ::1 "disk=$tmp/other"
# It hears it in the server's words, whichever comes first, the refusal or its own request.
for _ in {1..20}; do
	expect_nbdkit_failure \
		"127\.0\.0\.1:$server_port.*refused: .*\(does its --allow contain this address\?" \
		"server=127.0.0.1:$server_port" export=disk
done
wait_line "$server_log" '127\.0\.0\.1.*(allow|refus)'

for range in 127.0.0.0/8 127.0.0.1 127.0.0.0/31 0.0.0.0/0; do
	start_server --allow 192.0.2.1 --allow "$range" "disk=$tmp/disk"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 1048576 ]
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
done
