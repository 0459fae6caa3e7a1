#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Type=notify: READY=1 when it accepts connections, STOPPING=1 when it ends.
. ./tests/functions.sh
requires_server
requires /usr/bin/python3 --version

truncate -s 1M "$tmp/disk"
# Prints each message as a line.
cat >"$tmp/notify.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(4096).decode().replace("\n", " "), flush=True)
END
/usr/bin/python3 "$tmp/notify.py" "$tmp/notify.sock" >"$tmp/notify.out" &
cleanup_fn kill_process $!
wait_line "$tmp/notify.out" '^bound'
NOTIFY_SOCKET=$tmp/notify.sock start_server "disk=$tmp/disk"
wait_line "$tmp/notify.out" 'READY=1'
# A start has more time for each export: one that is opened, locked, looked at again and claimed.
[ "$(grep -c '^EXTEND_TIMEOUT_USEC=120000000' "$tmp/notify.out")" -eq 4 ]
stop_process "$server_pid"
wait_line "$tmp/notify.out" 'STOPPING=1'

# A start that waits for a lock has more time, before systemd ends it.
exec 9>>"$tmp/disk"
flock 9
NOTIFY_SOCKET=$tmp/notify.sock "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none \
	--lock-timeout 100 "disk=$tmp/disk" >"$tmp/locked.log" 2>&1 9>&- &
locked_pid=$!
cleanup_fn stop_process "$locked_pid"
wait_line "$tmp/notify.out" '^EXTEND_TIMEOUT_USEC=160000000'
ready() { [ "$(grep -c READY=1 "$tmp/notify.out")" -eq "$1" ]; }
ready 1
exec 9>&-
wait_until "the start goes on" ready 2
stop_process "$locked_pid"

# Who cannot be told is named; the server serves.
NOTIFY_SOCKET=$tmp/nobody.sock start_server "disk=$tmp/disk"
wait_line "$server_log" "warning: .*NOTIFY_SOCKET '$tmp/nobody.sock'.*No such file"
