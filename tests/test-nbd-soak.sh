#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients of both gateways write up to 1 MiB a request over TLS and two paths, many at a time, and
# read it back.  Meanwhile the server is killed, the gateway is replaced, both at once, a path is
# disconnected, the limits of the export change by a reload, its size grows, and the key of the
# gateway is replaced.  No request fails, none is forgotten, and each answered write is there.
# SOAK_SECONDS says for how long; ./check.sh --full=soak, for an hour.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plugin
/usr/bin/python3 -c 'import nbd' 2>/dev/null || skip "python3-libnbd is not installed"

clients=3
truncate -s 64M "$tmp/disk"
key() { "$top_builddir/rtrs-psk" "gw/$1"; }
(umask 077; key 0 >"$tmp/server.psk"; cp "$tmp/server.psk" "$tmp/gateway.psk")
rtrsctl() { timeout $((2 * TIMEOUT_S)) "$top_builddir/rtrsctl" --socket "$tmp/$1.ctl" "${@:2}"; }

# configure LIMIT: of the export.
configure() {
	cat >"$tmp/server.conf" <<-END
	[server]
	listen = unix:$tmp/rtrs1
	listen = unix:$tmp/rtrs2
	control = $tmp/server.ctl
	state-dir = $tmp
	tls-psk = $tmp/server.psk
	[export "disk"]
	path = $tmp/disk
	$1
	END
}
configure ""
serve() { start_server --config "$tmp/server.conf"; }
serve
parameters=("server=unix:$tmp/rtrs1" "path=unix:$tmp/rtrs2" export=disk io-timeout=forever
	"tls-psk=$tmp/gateway.psk"
	"control=$tmp/gateway.ctl")
gateway_at() {
	case $front in
	rtrs-nbd) start_gateway --threads=2 "${parameters[@]}" ;;
	nbdkit) start_nbdkit "${parameters[@]}"; gateway_pid=$nbdkit_pid ;;
	esac
	ln -sfn "$sock" "$tmp/nbd.sock"
}

# goes_on N: behind N answers.  The clients have not ended.
goes_on() {
	[ -d "/proc/$soak_pid" ] && [ "$(cat "$tmp/done" 2>/dev/null || echo 0)" -gt "$1" ]
}
progress() {
	local n
	n=$(cat "$tmp/done" 2>/dev/null || echo 0)
	wait_until "answers behind $what (see soak.log)" goes_on $((n + 30))
}

nkeys=0
# The new key is at both ends before the old one leaves.
key_is_replaced() {
	nkeys=$((nkeys + 1))
	(umask 077; key $nkeys >"$tmp/new.psk")
	cat "$tmp/new.psk" >>"$tmp/server.psk"
	rtrsctl server reload
	cat "$tmp/new.psk" >"$tmp/gateway.psk"
	rtrsctl gateway reload
	cat "$tmp/new.psk" >"$tmp/server.psk"
	rtrsctl server reload
}

# SIGTERM of nbdkit is an error for its clients (nbdkit-rtrs-plugin(1)).
gateway_ends() {
	case $front in
	rtrs-nbd) stop_process "$gateway_pid" ;;
	nbdkit) kill_process "$gateway_pid" ;;
	esac
}

disk_mib=64
fault() {
	case $(($1 % 7)) in
	0) what="a killed server"; kill_process "$server_pid"; serve ;;
	1) what="another gateway"; gateway_ends; gateway_at ;;
	2)
		what="another gateway and a killed server"
		kill_process "$server_pid"; gateway_ends
		serve; gateway_at
		;;
	3) what="another key"; key_is_replaced ;;
	4) what="a limit"; configure "bps = $((16 + $1))M"; rtrsctl server reload ;;
	5)
		what="a larger disk and no limit"
		truncate -s "$((++disk_mib))M" "$tmp/disk"
		rtrsctl server export resize disk
		configure ""; rtrsctl server reload
		;;
	6) what="a disconnected path"
		rtrsctl gateway path disconnect "unix:$tmp/rtrs$((1 + $1 % 2))" ;;
	esac
}

for front in rtrs-nbd nbdkit; do
	rm -f "$tmp/stop" "$tmp/done"
	gateway_at
	/usr/bin/python3 "$top_srcdir/tests/nbd-soak.py" "$tmp/nbd.sock" "$tmp" $clients \
		>"$tmp/soak.log" 2>&1 &
	soak_pid=$!
	what="the start" faults=0
	progress
	until_s=$((SECONDS + ${SOAK_SECONDS:-10} / 2))
	while [ $SECONDS -lt $until_s ] || [ $faults -lt 7 ]; do
		fault $faults
		faults=$((faults + 1))
		progress
	done
	touch "$tmp/stop"
	expect_exit "$soak_pid" 0
	cat "$tmp/soak.log"
	echo "$front: $faults faults"
	gateway_ends
done
