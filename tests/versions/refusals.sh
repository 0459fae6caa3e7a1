#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS and authentication between a client of one version and a server of the other one: what fits
# works, and what a default or a rule has changed is refused by a line at each end that says what
# to do.  The client is rtrs-nbd, and the line is the one that it ends with.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_gateway

umask 077
"$top_builddir/rtrs-psk" alice >"$tmp/keys.psk"
random_file "$tmp/disk" 65536
tls=(tls-psk="$tmp/keys.psk")
auth=(auth-psk="$tmp/keys.psk")

# serve VERSION OPTION...
serve() {
	use "$1"
	start_server --listen tcp://127.0.0.1:0 --listen "unix:$tmp/rtrs.sock" --control none \
		"${@:2}" "disk=$tmp/disk"
	places=("127.0.0.1:$server_port" "unix:$tmp/rtrs.sock")
}

# The log of the server says REGEX, if there is one, in a line of now.
server_says() {
	[ -z "$1" ] || wait_line "$server_log" "$1"
}

# works SERVER'S-LINE CLIENT'S-LINE PARAMETER...: of the client of the other version, over tcp and
# a unix socket.
works() {
	local place

	use "$(other "$version")"
	for place in "${places[@]}"; do
		start_gateway "$place" export=disk control=none "${@:3}"
		[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" -eq 65536 ]
		[ -z "$2" ] || grep -q -E "$2" "$gateway_log"
		stop_process "$gateway_pid"
		server_says "$1"
	done
}

# refused SERVER'S-LINE CLIENT'S-LINE PARAMETER...
refused() {
	local place

	use "$(other "$version")"
	for place in "${places[@]}"; do
		must_fail timeout "$TIMEOUT_S" "$RTRS_NBD" -f -U "$tmp/refused.sock" "$place" export=disk control=none \
			"${@:3}" </dev/null >"$tmp/refused.log" 2>&1
		cat "$tmp/refused.log"
		grep -q -E -- "$2" "$tmp/refused.log"
		server_says "$1"
	done
}

# serve_on VERSION OPTION...: one server ends before the next one.
serve_on() {
	[ -z "${version-}" ] || stop_process "$server_pid"
	version=$1
	serve "$@"
}

# ---- TLS ----

serve_on before --tls=require --tls-psk="$tmp/keys.psk"
works '' '' tls=require "${tls[@]}"
works '' '' "${tls[@]}"
refused '' 'the server requires TLS: expected tls=require and tls-psk=FILE'
serve_on now --tls=require --tls-psk="$tmp/keys.psk"
works '' '' tls=require "${tls[@]}"
works '' '' "${tls[@]}"
refused 'the peer does not speak TLS, which is required here' \
	'the server requires TLS: expected tls='

# Keys alone meant tls=on, and mean tls=require.
serve_on before --tls-psk="$tmp/keys.psk"
works '' '' "${tls[@]}"
works '' ''
serve_on now --tls-psk="$tmp/keys.psk"
works '' '' "${tls[@]}"
refused 'the peer does not speak TLS, which is required here' \
	'the server requires TLS: expected tls='
serve_on now --tls=on --tls-psk="$tmp/keys.psk"
works '' ''
serve_on before
refused '' 'the server has no TLS \(tls=off there\), which is required here' "${tls[@]}"
works '' 'the server has no TLS: continuing without' tls=on "${tls[@]}"
serve_on now
works '' 'the server has no TLS: ' "${tls[@]}"

# ---- authentication ----

# The proof of before counts over RDMA alone.  Here it is none: both ends need auth=psk until both
# are of now.
client_old='its version of authentication is not accepted over this transport.*: upgrade the client'
server_old='an older server has only version 1, which is not accepted over TCP.*: upgrade the server'
serve_on now --auth=require --auth-psk="$tmp/keys.psk"
refused "connection refused: $client_old" "the server's log says" "${auth[@]}"
refused "connection refused: $client_old" "the server's log says" auth=psk "${auth[@]}"
refused 'it does not authenticate, which --auth=require needs' "the server's log says"
serve_on now --auth=psk --auth-psk="$tmp/keys.psk"
refused "not authenticated: $client_old" \
	'the server does not authenticate, which auth=require demands' "${auth[@]}"
works "not authenticated: $client_old" '' auth=psk "${auth[@]}"
works '' ''
serve_on before --auth=require --auth-psk="$tmp/keys.psk"
refused 'it does not authenticate, which --auth=require demands' \
	'or it is older, .*: upgrade the server' "${auth[@]}"
refused 'it does not authenticate, which --auth=require demands' 'or it is older, .*: upgrade the server' \
	auth=psk "${auth[@]}"
serve_on before --auth=psk --auth-psk="$tmp/keys.psk"
refused '' "which auth=require needs; $server_old" "${auth[@]}"
works '' "$server_old" auth=psk "${auth[@]}"
