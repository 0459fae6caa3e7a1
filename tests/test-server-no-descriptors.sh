#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Too few descriptors to start, from hardly one to nearly enough: each time one line says why, and
# the status is 1, whatever part of the start it was, on whatever thread.
. ./tests/functions.sh
requires_server
requires_plain_build

truncate -s 1M "$tmp/disk"
failed=0
for n in $(seq 6 19); do
	status=0
	# Started enough, it would run for ever.
	(ulimit -n "$n" && exec timeout 20 "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 \
		--threads 4 "disk=$tmp/disk") >"$tmp/out" 2>&1 || status=$?
	cat "$tmp/out"
	[ "$status" != 124 ] || break
	[ "$status" = 1 ] || fail "with $n descriptors: status $status, expected 1"
	[ "$(grep -c 'error: ' "$tmp/out")" = 1 ] || fail "with $n descriptors: not one error line"
	failed=$((failed + 1))
done
[ "$failed" -gt 5 ] || fail "only $failed starts failed: the limits do not reach"

# What it may have without asking it takes.
SERVER_PREFIX="prlimit --nofile=64:512" start_server "disk=$tmp/disk"
grep -q -E '^Max open files +512 +512' "/proc/$server_pid/limits"

# That is before the exports are opened.
exports=()
for i in $(seq 80); do
	truncate -s 4096 "$tmp/export$i"
	exports+=("export$i=$tmp/export$i")
done
SERVER_PREFIX="prlimit --nofile=64:1024" start_server --threads 2 "${exports[@]}"
