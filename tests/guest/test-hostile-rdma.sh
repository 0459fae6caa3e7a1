#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 mem=6G timeout=400 full
# (6G: a path may announce 4096 connections, which is more than the share of a host in less)
# Hostile cases (tests/hostile) over RDMA, those about the set-up and the life of a path and some
# bad requests: each ends as its table says, and after each a well-behaved client is served and
# nothing is left behind.  Those about clients that say nothing run meanwhile, against a server of
# their own.  What the cases say about RNBD has nothing to do with the transport:
# tests/test-hostile.sh.  HOSTILE_ARGS chooses others.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server

random_file "$tmp/disk0" $((8 << 20))
random_file "$tmp/ro0" $((8 << 20))
random_file "$tmp/good" $((1 << 20))
cp "$tmp/ro0" "$tmp/ro0.before"
# A server locks what it exports, and this one runs beside the others.
cp "$tmp/good" "$tmp/good.slow"

# hostile PORT PID ARGUMENT...: waits longer than the server does for a set-up to end, because a
# request that meets no receive is only tried again (RNR), which no time-out but that one ends.
hostile() {
	./tests/hostile/hostile --server="rdma://$ip4:$1" --pid="$2" --timeout=$((2 * TIMEOUT_S)) \
		"${@:3}"
}

start_server --listen "rdma://$ip4:1235" "good=$tmp/good.slow"
hostile 1235 "$server_pid" --slow --log="$server_log" >"$tmp/slow.log" 2>&1 &
slow=$!

start_server --listen "rdma://$ip4:1234" --queue-depth=100 --max-io-size=131072 --threads=2 \
	"disk0=$tmp/disk0" "ro0=$tmp/ro0,readonly" "good=$tmp/good"
hostile 1234 "$server_pid" \
	--log="$server_log" "req/immediate type 3" "req/chunk = depth" "req/usr_len max" \
	"req/p14 sg_cnt 2" "req/descriptor with a bad key" "req/key of another region"
# shellcheck disable=SC2086 # words
hostile 1234 "$server_pid" ${HOSTILE_ARGS-conn order info vanish comeback}
stop_server "$server_pid"

# Here keys are windows of the device, so all that is wrong with a request is tried again.
start_server --listen "rdma://$ip4:1236" --queue-depth=100 --max-io-size=131072 --threads=2 \
	--invalidate=always \
	--log-level=debug "disk0=$tmp/disk0" "ro0=$tmp/ro0,readonly" "good=$tmp/good"
# shellcheck disable=SC2086 # words
hostile 1236 "$server_pid" ${HOSTILE_ARGS-req vanish comeback}
grep -q 'keys: .* mode MW1' "$server_log" || fail "no windows were used"
cmp "$tmp/ro0" "$tmp/ro0.before" || fail "a read-only export was written to"

wait $slow || fail "clients that say nothing"
cat "$tmp/slow.log"
# That of heartbeats without an answer: a byte stream can stop anywhere, and has more of them.
[ "$(grep -c '^ok  ' "$tmp/slow.log")" -eq 1 ] || fail "not all of them have run"
