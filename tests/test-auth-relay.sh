#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A relay between a client and a server that prove themselves to each other: it passes some
# connections of a path through and ends TLS on others.  The client does not verify certificates, or
# has tls=on.  A path is up as the ends made it, or not at all.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server
requires python3 --version

bench=$top_builddir/rtrs-bench
secret=SECRET-OF-THE-DISK
words=('cn = "disks"' 'ip_address = 127.0.0.1' tls_www_server signing_key)
authority "$tmp/pki"
certificate "$tmp/pki" server "${words[@]}"
authority "$tmp/relay"
certificate "$tmp/relay" server "${words[@]}"
"$top_builddir/rtrs-psk" alice >"$tmp/alice.psk"
head -c $((1 << 20)) <(yes $secret) >"$tmp/disk"

# relay DO,DO,...: between the client and the last server.  Of --connections=1 the path has a
# connection for the proof and two of its own.
relay() {
	relay_log=$tmp/relay-$1.$((++relays)).log
	python3 "$top_srcdir/tests/auth-relay.py" "$tmp/relay" "$server_port" "$secret" "$1" \
		>"$relay_log" 2>"$relay_log.err" &
	relay_pid=$!
	cleanup_fn kill_process "$relay_pid"
	wait_line "$relay_log" '^[0-9]+$'
	relay_port=$(head -n 1 "$relay_log")
}
# What reads of the disk through the relay.
io=("$bench" --number-ios=2 --rw=read --connections=1
	--auth-psk="$tmp/alice.psk")
# caught REGEX DO,DO,... OPTION...: the client says REGEX, and the relay has read nothing.
caught() {
	local regex=$1
	relay "$2"
	shift 2
	must_fail timeout "$TIMEOUT_S" "${io[@]}" "$@" "127.0.0.1:$relay_port" disk \
		>"$tmp/said" 2>&1
	grep -q -E -- "$regex" "$tmp/said" || fail "does not match '$regex': $(cat "$tmp/said")"
	kill_process "$relay_pid"
	must_fail grep -q ' read$' "$relay_log"
}
# That the relay sees what it can read: tls=on of both ends allows it to take TLS away from all.
reads_in_clear() {
	relay clear
	timeout "$TIMEOUT_S" "${io[@]}" --tls=on "${verifies[@]}" "127.0.0.1:$relay_port" disk
	# It says so behind the data that it passes on.
	wait_line "$relay_log" ' clear read$'
	kill_process "$relay_pid"
}
relays=0
stranger=(--tls-certificates="$tmp/pki" --tls-verify-peer=false)
verifies=(--tls-certificates="$tmp/pki")
refused='connection [0-9] was refused: .*TLS was terminated between the ends'
proof='authentication as alice: the server has refused the key, or TLS was terminated'
no_tls='it has no TLS, and the first connection of its path has'
for mode in require on; do
	start_server --tls=$mode --tls-certificates="$tmp/pki" --auth=require \
		--auth-psk="$tmp/alice.psk" --control none "disk=$tmp/disk,readonly"
	relay pass
	timeout "$TIMEOUT_S" "${io[@]}" --tls=require "${stranger[@]}" \
		"127.0.0.1:$relay_port" disk
	kill_process "$relay_pid"
	must_fail grep -q ' read$' "$relay_log"
	caught "$proof" tls --tls=require "${stranger[@]}"
	wait_line "$server_log" 'authentication: wrong key, or TLS was terminated or '
	caught "$refused" pass,tls,tls --tls=require "${stranger[@]}"
	caught "$refused" pass,pass,tls --tls=require "${stranger[@]}"
	wait_line "$server_log" 'connection refused: .*TLS was terminated between the ends'
	caught "$no_tls" pass,plain,plain --tls=on "${verifies[@]}"
	caught "$no_tls" pass,pass,plain --tls=on "${verifies[@]}"
	caught "$no_tls" pass,pass,clear --tls=on "${verifies[@]}"
	caught "$proof" plain --tls=on "${verifies[@]}"
	[ $mode = require ] || reads_in_clear
	stop_process "$server_pid"
done
