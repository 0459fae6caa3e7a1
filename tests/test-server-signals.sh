#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Signals that are sent to daemons out of habit do not end rtrs-server or rtrs-nbd, even when they
# come together; behind them it serves, and SIGTERM ends it.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires nbdinfo --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
for signal in HUP USR1 USR2; do
	kill -"$signal" "$server_pid"
	wait_line "$server_log" "SIG$signal: ignored"
done
# All of them wait when the thread looks.
stop_all_threads "$server_pid"
kill -HUP "$server_pid"
kill -USR1 "$server_pid"
kill -TERM "$server_pid"
kill -CONT "$server_pid"
expect_exit "$server_pid" 0
wait_line "$server_log" 'SIGTERM: stopping'
# The other signals that end rtrs-nbd end a server, too.
for signal in INT QUIT; do
	start_server "disk=$tmp/disk"
	kill -"$signal" "$server_pid"
	expect_exit "$server_pid" 0
	wait_line "$server_log" "SIG$signal: stopping"
done

# The same of rtrs-nbd.
start_server "disk=$tmp/disk"
start_gateway -v "server=127.0.0.1:$server_port"
for signal in HUP USR1 USR2; do
	kill -"$signal" "$gateway_pid"
	wait_line "$gateway_log" "SIG$signal: ignored"
done
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///disk?socket=$sock")" = 1048576 ]
stop_all_threads "$gateway_pid"
kill -HUP "$gateway_pid"
kill -USR1 "$gateway_pid"
kill -USR2 "$gateway_pid"
kill -TERM "$gateway_pid"
kill -CONT "$gateway_pid"
expect_exit "$gateway_pid" 0
stopped="$stopped$gateway_pid "

# A client does not notice.
start_nbdkit "server=127.0.0.1:$server_port" export=disk
kill -HUP "$server_pid"
wait_line "$server_log" 'SIGHUP: ignored'
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 1048576 ]
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# Two that end it, at once, as timeout(1) sends them: nothing that has a name stays.
nothing_left() {
	local left

	left=$(find "$tmp" \( -name '*.sock*' -o -name '*.prom*' \) -a ! -name 'nbdkit*')
	[ -z "$left" ] || fail "left behind, $1: $left"
}

for round in {1..60}; do
	start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/control.sock" \
		--metrics "unix:$tmp/metrics.sock" --metrics-file "$tmp/m.prom" "disk=$tmp/disk"
	# Together, one after the other has been seen, or one from each of two processes.
	signaled_us=${EPOCHREALTIME/./}
	case $((round % 3)) in
	0) kill -TERM "$server_pid"; kill -TERM "$server_pid" 2>/dev/null || true ;;
	1) kill -TERM "$server_pid"; kill -INT "$server_pid" 2>/dev/null || true ;;
	2) kill -TERM "$server_pid" & kill -INT "$server_pid" 2>/dev/null || true; wait $! ||
		true ;;
	esac
	wait_until "the end of the server" process_ended "$server_pid"
	stopped="$stopped$server_pid "
	# A main thread that does not take the first signal within a second counts as stuck: then
	# the next server takes the names away.
	[ $((${EPOCHREALTIME/./} - signaled_us)) -ge 1000000 ] || nothing_left "round $round"
done

# While answers cannot leave the server waits, so that the second signal comes for sure before the
# end.
requires_plain_build
truncate -s 128M "$tmp/large"
start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/control.sock" "disk=$tmp/large"
start_nbdkit "server=unix:$tmp/rtrs.sock" export=disk control="$tmp/nbdkit.sock" io-timeout=0
export server_pid top_srcdir TIMEOUT_S
in_flight() {
	[ "$("$top_builddir/rtrsctl" --socket "$tmp/nbdkit.sock" --json show |
		with_json 'print(a["sessions"][0]["paths"][0]["inflight"])')" -ge 100 ]
}
nbdsh_run "$uri" <<'END' &
import os, subprocess
subprocess.check_call(["bash", os.environ["top_srcdir"] + "/tests/stop-threads.sh",
                       os.environ["TIMEOUT_S"], os.environ["server_pid"]])
cookies = [h.aio_pread(nbd.Buffer(2 << 20), i << 21) for i in range(32)]
try:
    while h.aio_in_flight():
        h.poll(-1)
except nbd.Error:
    pass
END
reader=$!
wait_until "requests in flight" in_flight
stop_all_threads "$nbdkit_pid"
kill -CONT "$server_pid"
kill -TERM "$server_pid"
wait_line "$server_log" 'SIGTERM: stopping'
listener_is_gone() { [ ! -e "$tmp/rtrs.sock" ]; }
wait_until "the end of the listener" listener_is_gone
[ -S "$tmp/control.sock" ] || fail "the control socket is to be the last name"
kill -QUIT "$server_pid"
expect_exit "$server_pid" 131
stopped="$stopped$server_pid "
nothing_left "a second signal while answers wait"
kill -CONT "$nbdkit_pid"
wait "$reader" || true
