#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Other writers of the exported files are looked for once for all exports: when the server is ready,
# and behind each change that brings exports.
. ./tests/functions.sh
requires_server
requires strace -V
requires_plain_build
strace -o "$tmp/true" true || skip "strace may not look at processes here"

specs=()
for i in {1..20}; do
	truncate -s 1M "$tmp/disk$i"
	specs+=("disk$i=$tmp/disk$i")
	printf '[export "disk%d"]\npath = %s\n' "$i" "$tmp/disk$i"
done >"$tmp/exports"
looks() { grep -c 'openat(AT_FDCWD, "/proc", ' "$tmp/trace"; }
hold_open "$tmp/disk3"
holders[3]=$holder
hold_open "$tmp/disk17"
holders[17]=$holder
SERVER_PREFIX="strace -D -f -o $tmp/trace -e trace=openat" \
	start_server --listen "unix:$tmp/s" "${specs[@]}"
for i in 3 17; do
	wait_line "$server_log" \
		"warning: disk$i: '$tmp/disk$i' is open for writing in process ${holders[i]} \\(sleep\\)"
done
[ "$(looks)" -eq 1 ]
sed -n '/info: ready, version/,$p' "$server_log" | grep -c "open for writing" | grep -x 2

truncate -s 1M "$tmp/late"
hold_open "$tmp/late"
"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" \
	export add "late=$tmp/late"
wait_line "$server_log" \
	"warning: late: '$tmp/late' is open for writing in process $holder \\(sleep\\)"
[ "$(looks)" -eq 2 ]
stop_process "$server_pid"
grep -c "open for writing" "$server_log" | grep -x 3

# A reload.
printf '[server]\nlisten = unix:%s\n' "$tmp/s" >"$tmp/conf"
SERVER_PREFIX="strace -D -f -o $tmp/trace -e trace=openat" start_server --config "$tmp/conf"
cat "$tmp/exports" >>"$tmp/conf"
"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" reload |
	grep -c '^+disk' | grep -x 20
wait_line "$server_log" \
	"warning: disk17: '$tmp/disk17' is open for writing in process ${holders[17]} "
[ "$(looks)" -eq 1 ]
