#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts whose connections open nothing (nbd-flood.py) use up neither descriptors nor memory of a
# gateway: clients of another address get in, and a client that is served notices nothing.
. ./tests/functions.sh
requires_server; requires_gateway
requires_plain_build
requires nbdinfo --version
requires nbdsh --version
requires /usr/bin/python3 --version
NHALVES=8000
[ "$(ulimit -n -H)" = unlimited ] || [ "$(ulimit -n -H)" -gt $((NHALVES + 100)) ] ||
	skip "needs $NHALVES descriptors, the hard limit is $(ulimit -n -H)"

umask 077
"$top_builddir/rtrs-psk" alice >"$tmp/psk"
random_file "$tmp/disk" $((1 << 20))
start_server --control none "disk=$tmp/disk"

# start MODE [PREFIX...]: a gateway on a port of its own.  Sets port, and uri for the honest.
start() {
	local mode=$1 tls=() path=$tmp/port.$1
	shift
	[ "$mode" = off ] || tls=(--tls="$mode" --tls-psk="$tmp/psk")
	# shellcheck disable=SC2016 # the command's
	GATEWAY_PREFIX="$*" start_gateway -p 0 --threads=1 "${tls[@]}" \
		--run 'echo "$port" >'"$path"'; exec sleep 3600' \
		"server=127.0.0.1:$server_port" export=disk control=none
	wait_line "$path" .
	port=$(cat "$path")
	uri=nbd://127.0.0.1:$port
	[ "$mode" = off ] || uri="nbds://alice@127.0.0.1:$port?tls-psk-file=$tmp/psk"
}
# flood KIND NUMBER NETS: sets flood; ends with unflood.
flood() {
	mkfifo "$tmp/flood.in"
	TIMEOUT_S=$TIMEOUT_S timeout $((6 * TIMEOUT_S)) /usr/bin/python3 \
		"$top_srcdir/tests/nbd-flood.py" "$port" "$@" <"$tmp/flood.in" >"$tmp/flood.out" &
	flood=$!
	exec 9>"$tmp/flood.in"
	rm "$tmp/flood.in"
	TIMEOUT_S=$((3 * TIMEOUT_S)) wait_line "$tmp/flood.out" come
}
unflood() {
	exec 9>&-
	expect_exit "$flood" 0
}
# memory NAME: of the gateway, KiB.
memory() {
	sed -n -E "s/^$1:[[:space:]]+([0-9]+) kB$/\1/p" "/proc/$gateway_pid/status"
}

# ---- descriptors ----

start require prlimit --nofile=1024
# A client that is served: IO all the time, and no read is slow.
timeout $((4 * TIMEOUT_S)) nbdsh -c - <<END >"$tmp/served" &
import os, time
h.set_uri_allow_local_file(True)
h.connect_uri("$uri")
slowest, n = 0, 0
print("served", flush=True)
while not os.path.exists("$tmp/enough"):
	begin = time.monotonic()
	h.pread(4096, n % 256 * 4096)
	slowest = max(slowest, time.monotonic() - begin)
	n += 1
assert n > 100 and slowest < 2, (n, slowest)
h.shutdown()
END
served=$!
wait_line "$tmp/served" served
flood idle 1100 1
for _ in 1 2 3 4 5; do
	timeout 5 nbdinfo "$uri" >/dev/null
done
# 64 guests, the session and the program.
[ "$(find "/proc/$gateway_pid/fd" -type l | wc -l)" -lt $((64 + 100)) ] ||
	fail "one host has more than its share"
unflood
touch "$tmp/enough"
expect_exit "$served" 0
must_fail grep -q 'cannot accept' "$gateway_log"
wait_line "$gateway_log" \
	'client [0-9]+ of 127\.0\.0\.2:[0-9]+: connection ends: too many clients have opened no export'
[ "$(wc -l <"$gateway_log")" -lt 100 ] || fail "the log is flooded"
stop_process "$gateway_pid"

# ---- memory ----

# halves MODE KIB: of a guest, at most.
halves() {
	local before
	start "$1"
	timeout "$TIMEOUT_S" nbdinfo "$uri" >/dev/null
	before=$(memory VmRSS)
	flood half "$NHALVES" 8
	timeout 5 nbdinfo "$uri" >/dev/null
	# 256 guests, and 4 MiB for what has to go and for the allocator.
	echo "$1: VmRSS $before KiB, then at most $(memory VmHWM) KiB"
	[ $(($(memory VmHWM) - before)) -lt $((256 * $2 + 4096)) ] || fail "the guests hold memory"
	unflood
	stop_process "$gateway_pid"
}
# 14 KiB are of the handshake.  In clear, where an export may be opened so, half an option has a
# block of 64 KiB.
halves require 16
halves off 80
