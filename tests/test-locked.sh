#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is locked by another server, or by a process that may write, is waited for until --lock-timeout: then the server
# ends with status 1 and names the process.  A user who may only read the image, or open the directory of a socket,
# keeps no server from it.
. ./tests/functions.sh
requires_server
requires flock --version

chmod 755 "$tmp"
truncate -s 1M "$tmp/disk"
chmod 644 "$tmp/disk"

locked() {
	! flock --nonblock "$1" true
}

# refused REGEX OPTION...: a server that waits for a second, says for whom, and gives up.
refused() {
	local regex=$1 status=0
	shift
	# shellcheck disable=SC2046 # words
	timeout "$TIMEOUT_S" $(wrapper) "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none --lock-timeout 1 "$@" \
		</dev/null >"$tmp/refused.log" 2>&1 || status=$?
	cat "$tmp/refused.log"
	[ $status -eq 1 ] || fail "status $status instead of 1"
	grep -E "export 'd': '$tmp/disk' is locked by $regex: waited 1 s \(--lock-timeout\)" "$tmp/refused.log"
	grep -E "'$tmp/disk' is locked by $regex: waiting for it since [0-9]+ s, for at most 1 s" "$tmp/refused.log"
}

# ---- of those who may write ----

flock --no-fork "$tmp/disk" sleep 1000 &
holder=$!
cleanup_fn kill_process $holder
wait_until "the lock" locked "$tmp/disk"
refused 'process [0-9]+ \(sleep\)' "d=$tmp/disk"
refused 'process [0-9]+ \(sleep\)' "d=$tmp/disk,readonly"
kill_process $holder

start_server "d=$tmp/disk"
for dir in "$RUNTIME_DIRECTORY" "$tmp/other"; do
	refused "process $server_pid \\(.*\\)" --state-dir "$dir" "d=$tmp/disk"
	refused "process $server_pid \\(.*\\)" --state-dir "$dir" "d=$tmp/disk,readonly"
done
stop_server "$server_pid"
ls "$RUNTIME_DIRECTORY" "$tmp/other"
must_fail ls "$RUNTIME_DIRECTORY"/*.lock
must_fail ls "$tmp/other"/*.lock

# ---- of those who may not ----

requires_root
requires setpriv --reuid 65534 --regid 65534 --clear-groups true
mkdir -m 755 "$tmp/socks"
for what in "$tmp/disk" "$tmp/socks"; do
	setpriv --reuid 65534 --regid 65534 --clear-groups flock --no-fork "$what" sleep 1000 &
	cleanup_fn kill_process $!
	wait_until "the lock" locked "$what"
done
start_server --listen "unix:$tmp/socks/s" "d=$tmp/disk"
grep -E "'$tmp/disk' is locked by process [0-9]+ \(sleep\) of user 65534, which is no server that writes: ignored" \
	"$server_log"
# Servers keep each other away all the same.
refused "process [0-9]+ \\(.*\\)" "d=$tmp/disk"
refused "process [0-9]+ \\(.*\\)" --state-dir "$tmp/other" "d=$tmp/disk"
