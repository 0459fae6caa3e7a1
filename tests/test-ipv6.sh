#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# IPv6, and several --listen at once.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version
requires grep -q '^0\{31\}1 ' /proc/net/if_inet6

random_file "$tmp/disk" $((1 << 20))
start_server --listen 'tcp://[::1]:0' --listen tcp://127.0.0.1:0 "disk=$tmp/disk"
v6=$(sed -n 's,.*tcp://\[::1\]:\([1-9][0-9]*\).*,\1,p' "$server_log" | head -n 1)
v4=$(sed -n 's,.*tcp://127\.0\.0\.1:\([1-9][0-9]*\).*,\1,p' "$server_log" | head -n 1)
for server in "[::1]:$v6" "127.0.0.1:$v4"; do
	start_nbdkit "server=$server" export=disk
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
	stop_process "$nbdkit_pid"
done
