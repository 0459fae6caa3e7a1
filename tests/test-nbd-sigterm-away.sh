#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-nbd is stopped (SIGTERM) while requests wait for a server that is gone, which rtrs-nbd knows:
# they get no answer, and so no error.  QEMU has them answered by the next rtrs-nbd.
. ./tests/functions.sh
requires_server; requires_gateway
requires qemu-io --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/ctl" io-timeout=forever
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/ctl")

# A guest is a qemu-io, and descriptor 1N is its standard input: each line is read before the next.
guests=() nguests=4
for ((n = 0; n < nguests; n++)); do
	mkfifo "$tmp/guest$n"
	timeout $((4 * TIMEOUT_S)) qemu-io --image-opts \
		"driver=nbd,server.type=unix,server.path=$sock,export=disk,reconnect-delay=60" \
		<"$tmp/guest$n" >"$tmp/guest$n.log" 2>&1 &
	guests[n]=$!
	eval "exec 1$n>\"\$tmp/guest$n\""
	echo "write -P 1 $((n * 64))k 4k" >&"1$n"
	wait_line "$tmp/guest$n.log" 'wrote 4096/4096'
done
kill_process "$server_pid"
# The loss is known before a request waits, and before the signal comes.
wait_line "$gateway_log" 'lost: .*reconnecting'
for ((n = 0; n < nguests; n++)); do
	echo "write -P $((n + 10)) $((n * 64))k 64k" >&"1$n"
done
waiting() { [ "$("${ctl[@]}" --json clients | grep -o '"inflight":1' | wc -l)" -eq "$nguests" ]; }
wait_until "requests that wait" waiting
kill -TERM "$gateway_pid"
expect_exit "$gateway_pid" 0
stopped="$stopped$gateway_pid "
cat "$tmp"/guest*.log | grep -E 'wrote 65536|failed|error' && fail "a request has been answered"
# The log says so, and has no error that no client heard of.
grep "$nguests requests had no answer when rtrs-nbd stopped: a client" "$gateway_log"
must_fail grep -E "export 'disk': |requests fail until" "$gateway_log"

start_server --listen "tcp://127.0.0.1:$server_port" "disk=$tmp/disk"
"$RTRS_NBD" -f -U "$sock" -P "$tmp/next.pid" "server=127.0.0.1:$server_port" export=disk \
	</dev/null >"$tmp/next.log" 2>&1 &
next_pid=$!
cleanup_fn stop_process "$next_pid"
wait_until "the next rtrs-nbd" nbdkit_ready_or_ended "$next_pid" "$tmp/next.pid"
for ((n = 0; n < nguests; n++)); do
	wait_line "$tmp/guest$n.log" 'wrote 65536/65536'
	echo "read -P $((n + 10)) $((n * 64))k 64k" >&"1$n"
	wait_line "$tmp/guest$n.log" 'read 65536/65536'
	echo quit >&"1$n"
	expect_exit "${guests[n]}" 0
done
cat "$tmp"/guest*.log | grep -i -E 'failed|error' && fail "a request failed"

# A client that waits for its export is refused: its error, and the log, name the next rtrs-nbd.
start_gateway "server=unix:$tmp/none" export=disk connect-timeout=forever control="$tmp/ctl"
timeout "$TIMEOUT_S" qemu-io --image-opts \
	"driver=nbd,server.type=unix,server.path=$sock,export=disk" >"$tmp/late.log" 2>&1 </dev/null &
late=$!
has_come() { "${ctl[@]}" --json clients | grep '"client":"'; }
wait_until "a client" has_come
kill -TERM "$gateway_pid"
expect_exit "$gateway_pid" 0
stopped="$stopped$gateway_pid "
expect_exit "$late" 1
cat "$tmp/late.log"
grep "export 'disk' of server=.*: this gateway ends, and the server had not answered .a client that" \
	"$gateway_log"
must_fail grep -i 'Input/output error' "$gateway_log" "$tmp/late.log"
