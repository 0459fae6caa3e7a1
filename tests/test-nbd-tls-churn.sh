#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts without a key that begin handshakes of TLS with rtrs-nbd as fast as it drops them: an NBD
# client that is 40 ms away, and so needs 160 ms for its handshake, gets in each time.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plain_build
requires nbdinfo --version
requires /usr/bin/python3 --version

umask 077
"$top_builddir/rtrs-psk" honest >"$tmp/good.psk"
truncate -s 1M "$tmp/disk"
start_server --control none "disk=$tmp/disk"
start_gateway_tcp --tls=require --tls-psk="$tmp/good.psk" \
	"server=127.0.0.1:$server_port" export=disk control=none

/usr/bin/python3 "$top_srcdir/tests/delay-relay.py" "$port" 40 >"$tmp/relay.port" &
cleanup_fn kill_process $!
wait_line "$tmp/relay.port" '^[0-9]+$'
far="nbds://honest@127.0.0.1:$(cat "$tmp/relay.port")/disk?tls-psk-file=$tmp/good.psk"

# With one host its own share is full, with five all places are.
for hosts in 1 5; do
	# The client's flags, and STARTTLS.
	printf '\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0' |
		"$top_builddir/stranger-churn" "$port" $hosts >"$tmp/churn$hosts" &
	churn=$!
	cleanup_fn kill_process $churn
	wait_line "$tmp/churn$hosts" '^churning$'
	for _ in {1..6}; do
		[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$far")" = 1048576 ]
	done
	kill -TERM $churn
	expect_exit $churn 0
	cat "$tmp/churn$hosts"
done
# It was the churn that made room.
wait_line "$gateway_log" 'client [0-9]+ of 127\.0\.0\.2:.*: connection ends: (TLS: )?too many'
must_fail grep -E 'of 127\.0\.0\.1:.*: connection ends: (TLS|too many)' "$gateway_log"
