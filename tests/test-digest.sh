#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# digest=crc32c over a network that changes a bit, in each byte of a frame's header and in message,
# data and digest of requests and answers: a disk that is copied through it in and out is the same,
# both ends say and count what happened, and a server that has no digests is refused.
. ./tests/functions.sh
requires_server; requires_gateway
requires nbdcopy --version
requires python3 --version
grep -q '^#define HAVE_ISAL' "$top_builddir/config.h" || skip "built without ISA-L"

ctl=$top_builddir/rtrsctl
random_file "$tmp/new" $((2 << 20))
truncate -s 2M "$tmp/disk"
start_server --control "$tmp/server.ctl" --metrics-file "$tmp/server.prom" disk="$tmp/disk"
mkfifo "$tmp/plan"
python3 "$top_srcdir/tests/flip-relay.py" "$server_port" "$tmp/plan" >"$tmp/relay.log" 2>&1 &
cleanup_fn kill_process $!
wait_line "$tmp/relay.log" '^[0-9]+$'
relay=127.0.0.1:$(head -n 1 "$tmp/relay.log")
start_gateway "server=$relay" export=disk digest=crc32c control="$tmp/gateway.ctl"

# logged REGEX N: the relay has said so N times.
logged() {
	[ "$(grep -c "$1" "$tmp/relay.log")" -eq "$2" ]
}
# flips WAY OPCODE BIT: in the second of such frames while the disk is copied.
flips=0
flips() {
	echo "$1 $2 1 $3" >"$tmp/plan"
	flips=$((flips + 1))
	wait_until "the plan of the relay" logged '^plan' $flips
	case $1,$2 in
	server,5) timeout $((4 * TIMEOUT_S)) nbdcopy --flush "$tmp/new" "$uri" ;;
	*) timeout $((4 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/got" && cmp "$tmp/new" "$tmp/got" ;;
	esac
	wait_until "a flipped bit" logged '^[sc]' $flips
	cmp "$tmp/new" "$tmp/disk"
}
nbdcopy --flush "$tmp/new" "$uri"

# Requests, data of reads, answers: bytes, then headers.
for bit in 1000 100000 -1; do
	flips server 5 $bit
done
flips client 4 5000
flips client 2 192
flips client 2 -1
wait_line "$server_log" 'a request did not arrive as it was sent: .* of disk: its digest is'
wait_line "$gateway_log" 'an answer did not arrive as it was sent: its digest is .*: read of .* of disk'
# Not all of them: on a busy machine a path may be lost before, for its heartbeats.
for end in server gateway; do
	"$ctl" --socket "$tmp/$end.ctl" --json show >"$tmp/show"
	grep -q '"digest_errors": *[1-9]' "$tmp/show"
	grep -q '"digest": *"crc32c"' "$tmp/show"
	status=0
	"$ctl" --socket "$tmp/$end.ctl" check >"$tmp/check" || status=$?
	cat "$tmp/check"
	[ $status -eq 1 ]
	grep -q -E 'RTRS WARNING .*: [0-9]+ digests? (was|were) wrong, the last .* ago' "$tmp/check"
done
wait_line "$tmp/server.prom" '^rtrs_server_digest_errors_total{.*} [1-9]'
# opcode, length, immediate, key, address
for byte in 0 4 8 12 16; do
	flips server 5 $((8 * byte))
done
flips client 4 32
flips client 4 128
flips client 2 8
flips client 2 64
