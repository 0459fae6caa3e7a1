#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients of rtrs-nbd write up to 1 MiB a request, many at a time, and read it back, while the
# server is killed, the gateway is upgraded, and both at once.  No request fails, none is forgotten,
# and each answered write is there.  SOAK_SECONDS says for how long; ./check.sh --full=soak, for an
# hour.
. ./tests/functions.sh
requires_server; requires_gateway
/usr/bin/python3 -c 'import nbd' 2>/dev/null || skip "python3-libnbd is not installed"

clients=3
truncate -s 64M "$tmp/disk"
serve() {
	start_server --listen "unix:$tmp/rtrs" --state-dir "$tmp" --control none "disk=$tmp/disk"
}
serve
gateway=(--threads=2 "server=unix:$tmp/rtrs" export=disk io-timeout=forever control=none)
gateway_at() {
	start_gateway "${gateway[@]}"
	ln -sfn "$sock" "$tmp/nbd.sock"
}
gateway_at

/usr/bin/python3 "$top_srcdir/tests/nbd-soak.py" "$tmp/nbd.sock" "$tmp" $clients \
	>"$tmp/soak.log" 2>&1 &
soak_pid=$!

# goes_on N: behind N answers.  The clients have not ended.
goes_on() {
	[ -d "/proc/$soak_pid" ] && [ "$(cat "$tmp/done" 2>/dev/null || echo 0)" -gt "$1" ]
}
progress() {
	local n
	n=$(cat "$tmp/done" 2>/dev/null || echo 0)
	wait_until "answers behind $what (see soak.log)" goes_on $((n + 30))
}

what="the start" faults=0
progress
until_s=$((SECONDS + ${SOAK_SECONDS:-15}))
while [ $SECONDS -lt $until_s ] || [ $faults -lt 3 ]; do
	case $((faults % 3)) in
	0) what="a killed server"; kill_process "$server_pid"; serve ;;
	1) what="an upgrade"; stop_process "$gateway_pid"; gateway_at ;;
	2)
		what="an upgrade without a server"
		kill_process "$server_pid"; stop_process "$gateway_pid"
		serve; gateway_at
		;;
	esac
	faults=$((faults + 1))
	progress
done
touch "$tmp/stop"
expect_exit "$soak_pid" 0
cat "$tmp/soak.log"
echo "$faults faults"
