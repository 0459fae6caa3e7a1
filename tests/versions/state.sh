#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What one version leaves, and the other one reads: the records of lost writes and the number of
# the state directory, which a gateway sees, the locks of exports, and what "rtrsctl save" wrote.
# Back, too: a downgrade reads all of that but what the former version does not know, and says so
# by file and line.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_plugin; requires_gateway
requires nbdsh --version

truncate -s 1M "$tmp/disk"

# serve VERSION
serve() {
	use "$1"
	start_server --listen "unix:$tmp/rtrs.sock" "disk=$tmp/disk"
}

# dies_in_a_sync: the server is killed, and its record says what it says during a sync.
dies_in_a_sync() {
	kill_process "$server_pid"
	/usr/bin/python3 - "$RUNTIME_DIRECTORY"/*.state <<-'END'
	import struct, sys
	with open(sys.argv[1], "r+b") as f:
	    magic, losses, syncing = struct.unpack("<8sQQ", f.read(24))
	    assert magic == b"rtrsync1" and not syncing, (magic, syncing)
	    f.seek(16)
	    f.write(struct.pack("<Q", 1))
	END
}

# records FIRST: a loss that FIRST left is reported by the other version, once, and its count is
# kept by both.
records() {
	local first=$1 second

	second=$(other "$1")
	serve "$first"
	start_gateway "unix:$tmp/rtrs.sock" export=disk "io-timeout=$TIMEOUT_S"
	client_starts
	ask write ok
	ask flush ok
	ask write ok
	kill_process "$server_pid"
	serve "$second"
	ask flush ok
	ask write ok
	dies_in_a_sync
	serve "$first"
	ask flush EIO
	ask write ok
	ask flush ok
	ask write ok
	kill_process "$server_pid"
	serve "$second"
	ask flush ok
	client_ends
	stop_process "$gateway_pid"
	stop_process "$server_pid"
	rm -f "$RUNTIME_DIRECTORY"/*.state
}
records before
records now

# locks HOLDER: the other version does not export the file.
locks() {
	local strict=()

	serve "$1"
	use "$(other "$1")"
	[ "$1" = now ] || strict=(--strict)
	for dir in "$RUNTIME_DIRECTORY" "$tmp/state2"; do
		must_fail timeout "$TIMEOUT_S" "$RTRS_SERVER" --listen "unix:$tmp/second.sock" --control none \
			--lock-timeout 1 "${strict[@]}" --state-dir "$dir" "disk=$tmp/disk" \
				>"$tmp/locked" 2>&1
		grep -E 'is locked by' "$tmp/locked"
	done
	stop_process "$server_pid"
}
locks before
locks now

# ---- what is saved ----

# saves VERSION NAME=PATH[,...]...: these exports, in $tmp/conf.d.
saves() {
	local spec

	use "$1"
	rm -rf "$tmp/conf.d"
	mkdir "$tmp/conf.d"
	printf '[server]\nlisten = unix:%s\n' "$tmp/conf.sock" >"$tmp/conf"
	start_server --config "$tmp/conf"
	for spec in "${@:2}"; do
		"$rtrsctl" --server export add "$spec"
	done
	"$rtrsctl" --server save
	stop_process "$server_pid"
	cat "$tmp/conf.d/rtrsctl-saved.conf"
}
# plan VERSION: what this one makes of $tmp/conf.
plan() {
	use "$1"
	"$RTRS_SERVER" --config "$tmp/conf" --check
}

truncate -s 1M "$tmp/a, b" "$tmp/c;d" "$tmp/e ;f"
saved=("plain=$tmp/disk,iops=100,bps=1M,burst=2s,allow=unix,priority=idle" "comma=$tmp/a\\, b,readonly,direct")
saves before "${saved[@]}"
plan now >"$tmp/plan"
grep -q -E "plain.*$tmp/disk" "$tmp/plan"
grep -q -E "comma.*$tmp/a" "$tmp/plan"
saves now "${saved[@]}"
plan before >"$tmp/plan"
grep -q -E "plain.*$tmp/disk" "$tmp/plan"
grep -q -E "comma.*$tmp/a" "$tmp/plan"

# What came since is refused by its line.
saves now "plain=$tmp/disk,id=golden"
must_fail plan before >"$tmp/plan" 2>&1
grep -E "rtrsctl-saved.conf:[0-9]+: .*id" "$tmp/plan"
# And a value in quotes is another one to the version of before, which does not find it.
saves now "plain=$tmp/e ;f"
use before
must_fail timeout "$TIMEOUT_S" "$RTRS_SERVER" --config "$tmp/conf" >"$tmp/plan" 2>&1
grep "export 'plain': '\"$tmp/e' cannot be opened: No such file or directory" "$tmp/plan"

# ---- what a gateway saved ----

# The version of before does not read FILE.d of a gateway, and cannot say so: the guide does.
serve now
printf 'server = unix:%s\nexport = disk\n' "$tmp/rtrs.sock" >"$tmp/gateway"
mkdir "$tmp/gateway.d"
start_gateway config="$tmp/gateway"
"$rtrsctl" --gateway path add unix:"$tmp/other.sock"
"$rtrsctl" --gateway path save
stop_process "$gateway_pid"
for version in now:2 before:1; do
	use "${version%:*}"
	start_gateway config="$tmp/gateway"
	"$rtrsctl" --gateway --json show | /usr/bin/python3 -c "
import json, sys
assert len(json.load(sys.stdin)['sessions'][0]['paths']) == ${version#*:}"
	stop_process "$gateway_pid"
done
