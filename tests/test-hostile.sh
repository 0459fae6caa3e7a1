#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every hostile case (tests/hostile) against one server, with each --invalidate: each goes as its
# table says, and after each a well-behaved client is served and nothing is left behind.
# HOSTILE_ARGS chooses cases.
. ./tests/functions.sh
requires_server

random_file "$tmp/disk0" $((8 << 20))
random_file "$tmp/ro0" $((8 << 20))
random_file "$tmp/good" $((1 << 20))
cp "$tmp/ro0" "$tmp/ro0.before"

# hostile ARGUMENT...
hostile() {
	# The kit's own processes end in the middle of things: not the place to look for leaks.
	ASAN_OPTIONS=detect_leaks=0 ./tests/hostile/hostile --server="127.0.0.1:$server_port" \
		--pid="$server_pid" --timeout="$TIMEOUT_S" "$@"
}

for invalidate in always copy never; do
	begin=$SECONDS
	start_server --queue-depth=100 --max-io-size=131072 --threads=2 --invalidate=$invalidate \
		"disk0=$tmp/disk0" "ro0=$tmp/ro0,readonly" "good=$tmp/good"
	# With --log each failure must be told in one line.  All cases together would reach the
	# server's limit of lines; these few do not.
	hostile --log="$server_log" "req/immediate type 3" "req/chunk = depth" "req/usr_len max" \
		"req/p14 sg_cnt 2" "req/descriptor with a bad key" "req/key of another region"
	# shellcheck disable=SC2086 # words
	hostile ${HOSTILE_ARGS-}
	# 500 at once and 1 a second about one host, as many about strangers, and those of the
	# start.
	lines=$(wc -l <"$server_log") seconds=$((SECONDS - begin))
	[ "$lines" -le $((540 + 3 * seconds)) ] || fail "$lines lines of log in $seconds s"
	stop_server "$server_pid"
done

cmp "$tmp/ro0" "$tmp/ro0.before" || fail "a read-only export was written to"
[ "$(stat -c %s "$tmp/disk0")" -eq $((8 << 20)) ] || fail "the size of an export has changed"
