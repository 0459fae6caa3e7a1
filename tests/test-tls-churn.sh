#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts without a key that connect as fast as the server drops them: a client that is 40 ms away,
# and so needs 80 ms for the handshake of TLS, gets in each time.
. ./tests/functions.sh
requires_server; requires_plain_build
requires /usr/bin/python3 --version

umask 077
"$top_builddir/rtrs-psk" honest >"$tmp/good.psk"
random_file "$tmp/disk" $((1 << 20))
start_server --tls=require --tls-psk="$tmp/good.psk" --control none "disk=$tmp/disk"

/usr/bin/python3 "$top_srcdir/tests/delay-relay.py" "$server_port" 40 >"$tmp/relay.port" &
cleanup_fn kill_process $!
wait_line "$tmp/relay.port" '^[0-9]+$'
far=127.0.0.1:$(cat "$tmp/relay.port")

# With one host its own share is full, with five all places are.
for hosts in 1 5; do
	printf '\x16\x03\x01\0\x01\x01' |
		"$top_builddir/stranger-churn" "$server_port" $hosts >"$tmp/churn$hosts" &
	churn=$!
	cleanup_fn kill_process $churn
	wait_line "$tmp/churn$hosts" '^churning$'
	for _ in {1..6}; do
		timeout "$TIMEOUT_S" "$top_builddir/rtrs-bench" --tls-psk="$tmp/good.psk" \
			--transport=tcp --number-ios=1 "$far" disk
	done
	kill -TERM $churn
	expect_exit $churn 0
	cat "$tmp/churn$hosts"
done
# It was the churn that made room.
grep -q -E '127\.0\.0\.2:.*too many at once' "$server_log"
must_fail grep -E '127\.0\.0\.1:.*closed during the handshake' "$server_log"
