#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A server and a gateway go over from clear to TLS in the order of rtrs-guide(7), while QEMU writes:
# the server with tls=on, the gateway with its key, the server without tls=on.  "rtrsctl check"
# warns until the gateway has TLS; no request fails.
. ./tests/functions.sh
requires_server; requires_gateway
requires qemu-io --version
requires stdbuf --version

rtrsctl=$top_builddir/rtrsctl
"$top_builddir/rtrs-psk" gw >"$tmp/keys.psk"
chmod 600 "$tmp/keys.psk"
truncate -s 16M "$tmp/disk"
start_server "disk=$tmp/disk"
port=$server_port

# again OPTION...: the server starts again where it was.
server_again() {
	stop_process "$server_pid"
	start_server --listen "tcp://127.0.0.1:$port" "$@" "disk=$tmp/disk"
}
# The gateway starts, again or at first, at the socket of QEMU.
gateway_again() {
	[ -z "${gateway-}" ] || stop_process "$gateway"
	gateway_log=$tmp/gateway$((++gateways)).log
	# shellcheck disable=SC2046 # words
	$(wrapper) "$RTRS_NBD" -f -U "$tmp/nbd.sock" "server=127.0.0.1:$port" export=disk "$@" \
		7>&- >"$gateway_log" 2>&1 &
	gateway=$!
	cleanup_fn stop_process "$gateway"
	wait_until "the gateway" test -S "$tmp/nbd.sock"
}
gateways=0
# burst: sixteen writes more, which nobody waits for.
burst() {
	for _ in {1..16}; do
		echo "aio_write -P $((++writes)) $((writes * 64))k 64k"
	done >&7
}
writes=0
# check_is STATUS REGEX: what the health of server and gateway comes to.
check_is() {
	wait_until "$2" checked "$@"
}
checked() {
	local status=0
	"$rtrsctl" check >"$tmp/check" 2>&1 || status=$?
	[ $status -eq "$1" ] && grep -q -E -- "$2" "$tmp/check"
}

gateway_again
mkfifo "$tmp/commands"
# Without buffers: qemu-io waits for its input behind each line, and prints at the next one.
timeout $((4 * TIMEOUT_S)) stdbuf -i0 -oL qemu-io --image-opts \
	"driver=nbd,server.type=unix,server.path=$tmp/nbd.sock,export=disk,reconnect-delay=60" \
	<"$tmp/commands" >"$tmp/qemu-io.log" 2>&1 &
qemu=$!
exec 7>"$tmp/commands"
burst
wait_line "$tmp/qemu-io.log" 'wrote 65536/65536 bytes at offset 65536'
check_is 0 '^RTRS OK - 2 sessions, 2 of 2 paths up'

burst
server_again --tls=on --tls-psk="$tmp/keys.psk"
grep -q 'warning: tls=on: an active attacker can remove TLS' "$server_log"
check_is 1 '^RTRS WARNING - 2 sessions, 2 of 2 paths up: .* is in clear \(tls=on\)'

burst
gateway_again tls-psk="$tmp/keys.psk"
must_fail grep -q 'tls=on' "$gateway_log"
check_is 0 '^RTRS OK - 2 sessions, 2 of 2 paths up'

burst
server_again --tls-psk="$tmp/keys.psk"
must_fail grep -q 'tls=on' "$server_log"
check_is 0 '^RTRS OK - 2 sessions, 2 of 2 paths up'
expect_failure 1 'the server requires TLS' "$top_builddir/rtrs-bench" --number-ios=1 \
	"127.0.0.1:$port" disk

burst
{
	echo aio_flush
	for ((i = 1; i <= writes; i++)); do
		echo "read -P $i $((i * 64))k 64k"
	done
	echo quit
} >&7
exec 7>&-
expect_exit "$qemu" 0
[ "$(grep -c 'wrote 65536/65536' "$tmp/qemu-io.log")" -eq "$writes" ]
[ "$(grep -c 'read 65536/65536' "$tmp/qemu-io.log")" -eq "$writes" ]
must_fail grep -i -E 'fail|error' "$tmp/qemu-io.log"
