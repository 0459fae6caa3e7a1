#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Attacks on authentication in messages, on the wire: somebody between the ends, what was heard sent
# again, a downgrade, and 1,000 connections that stall.
. ./tests/functions.sh
requires_server
requires python3 --version

attack() {
	timeout "$TIMEOUT_S" python3 "$top_srcdir/tests/auth-attack.py" "$top_builddir/rtrs-bench" \
		"$strict" "$tmp/alice.psk" "$@"
}
umask 077
"$top_builddir/rtrs-psk" alice >"$tmp/alice.psk"
random_file "$tmp/disk" $((1 << 20))

start_server --auth=require --auth-psk="$tmp/alice.psk" --control none "disk=$tmp/disk,readonly"
strict=$server_port
strict_log=$server_log
start_server --auth=psk --auth-psk="$tmp/alice.psk" --control none "disk=$tmp/disk,readonly"
attack between
attack replay
attack downgrade "$server_port"
attack stall 1000
# Each session was that of an honest client.
grep -q 'session opened' "$strict_log"
grep -q 'authentication: not finished in time' "$strict_log"
grep -q 'authentication: too many at once, and a newcomer took its place' "$strict_log"
