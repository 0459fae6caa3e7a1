#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --ready-fd: written when, and only when, the server accepts connections; then closed.
. ./tests/functions.sh
requires_server

truncate -s 1M "$tmp/disk" "$tmp/other"
mkfifo "$tmp/ready"
"$RTRS_SERVER" --listen tcp://127.0.0.1:0 --ready-fd 9 "disk=$tmp/disk" \
	</dev/null 9>"$tmp/ready" >"$tmp/server.log" 2>&1 &
server_pid=$!
cleanup_fn stop_server "$server_pid"
# All that was written until the server closed its end, while it goes on running.
timeout "$TIMEOUT_S" cat "$tmp/ready" >"$tmp/said"
[ -s "$tmp/said" ]
must_fail process_ended "$server_pid"
port=$(server_port "$tmp/server.log")
timeout "$TIMEOUT_S" bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"

# A server that fails to start writes nothing.
expect_failure 1 "127\.0\.0\.1:$port" "$RTRS_SERVER" --listen "tcp://127.0.0.1:$port" \
	--ready-fd 8 "disk=$tmp/other" 8>"$tmp/not-ready"
[ ! -s "$tmp/not-ready" ]
