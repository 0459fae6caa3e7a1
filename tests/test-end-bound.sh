#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SIGTERM ends rtrs-server, rtrs-nbd and rtrs-bench although a thread of theirs never goes on (a
# debugger holds it): after a minute, with a line that tells what they have waited for.  A second
# SIGTERM ends them at once.  Requests that a server holds for ever fail before that minute is over,
# and rtrs-nbd closes their connections in good order.  So do those that the storage of a server
# holds, in nbdkit.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_gateway; requires_plugin; requires_root
requires_plain_build
requires qemu-io --version
requires nbdsh --version
TIMEOUT_S=$((TIMEOUT_S + 90))

truncate -s 64M "$tmp/disk"
mkfifo "$tmp/commands"
truncate -s 64M "$tmp/disk2"
start_server --threads 2 "disk=$tmp/disk" "disk2=$tmp/disk2"
server=127.0.0.1:$server_port silent_server=$server_pid

# thread PID NAME: the thread of that name, which may have to begin.
thread() {
	wait_until "a thread $2 of process $1" has_thread "$1" "$2" >&2
	basename "$(cat "$tmp/thread")"
}
has_thread() {
	local t

	for t in "/proc/$1/task"/*; do
		[ "$(cat "$t/comm" 2>/dev/null)" = "$2" ] || continue
		echo "$t" >"$tmp/thread"
		return 0
	done
	return 1
}

# hold TID...: sets holder.
hold() {
	rm -f "$tmp/holds"
	"$top_srcdir/tests/hold-thread.py" "$@" >"$tmp/holds" 2>&1 &
	holder=$!
	cleanup_fn release
	wait_until "threads to be held" hold_answers
	grep -q held "$tmp/holds" || skip "no thread can be held: $(cat "$tmp/holds")"
}
hold_answers() { [ -s "$tmp/holds" ]; }
release() {
	[ -n "$holder" ] || return 0
	kill "$holder" 2>/dev/null || true
	wait "$holder" || true
	holder=''
}

# takes PID: does a handler have SIGTERM?
takes() { [ $((0x$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status") & 1 << 14)) -ne 0 ]; }

# start_gateway_as NAME EXPORT: sets pid.
start_gateway_as() {
	rm -f "$tmp/$1.sock" "$tmp/$1.pid"
	"$RTRS_NBD" -f -U "$tmp/$1.sock" -P "$tmp/$1.pid" "server=$server" export="$2" \
		control="$tmp/$1.ctl" </dev/null >"$tmp/$1.log" 2>&1 &
	pid=$!
	wait_until "rtrs-nbd" nbdkit_ready_or_ended "$pid" "$tmp/$1.pid"
}

# start_bench_as NAME: sets pid.
start_bench_as() {
	"$top_builddir/rtrs-bench" --runtime=100000 "$server" disk >"$tmp/$1.log" 2>&1 &
	pid=$!
	wait_until "rtrs-bench" takes "$pid"
}

# Sets held_server, held_nbd and held_bench, and threads, those that will be held.
start_held() {
	"$RTRS_SERVER" --listen tcp://127.0.0.1:0 --threads 2 "other=$tmp/other" \
		>"$tmp/held-server.log" 2>&1 &
	held_server=$!
	wait_line "$tmp/held-server.log" 'ready, version'
	start_gateway_as held-nbd disk2; held_nbd=$pid
	start_bench_as held-bench; held_bench=$pid
	threads=("$held_server" "$(thread "$held_nbd" rtrs-service)" \
		"$(thread "$held_bench" rtrs-service)")
}

# taken PID: no SIGTERM waits for a thread.
taken() { [ $((0x$(sed -n 's/^ShdPnd:\t//p' "/proc/$1/status") & 1 << 14)) -eq 0 ]; }

truncate -s 1M "$tmp/other"
start_held
hold "${threads[@]}"
for pid in "$held_server" "$held_nbd" "$held_bench"; do
	kill -TERM "$pid"
	wait_until "the first signal to be taken" taken "$pid"
	kill -TERM "$pid"
	wait_until "the end of $pid" process_ended "$pid"
done
release
for pid in "$held_server" "$held_nbd" "$held_bench"; do
	expect_exit "$pid" 143
done

# nbdkit, while the storage of a server that lives holds a request.  What was answered before is
# there.
truncate -s 1M "$tmp/image"
mkfifo "$tmp/held" "$tmp/ended"
held_fs "$tmp/image"
start_server "disk=$tmp/mnt/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk io-timeout=forever
tmp=$tmp nbdsh_run "$uri" <<'END' &
import os, socket

h.pwrite(b"a" * 512, 0)
holder = socket.socket(socket.AF_UNIX)
holder.connect(os.environ["tmp"] + "/held.sock")
assert holder.recv(1) == b"H"
write = h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b"b" * 512)), 512)
h.poll(0)
assert holder.recv(1) == b"W"
with open(os.environ["tmp"] + "/held", "w") as f:
    f.write("held\n")
try:
    while not h.aio_command_completed(write):
        h.poll(-1)
except nbd.Error as e:
    assert e.errno == "EIO", e
else:
    raise SystemExit("answered by nobody")
h.shutdown()
with open(os.environ["tmp"] + "/ended") as f:
    assert f.readline() == "ended\n"
END
client=$!
read -r -t "$TIMEOUT_S" word <"$tmp/held"
[ "$word" = held ]

# The server of the others lives, and answers no IO.
start_gateway_as waits-nbd disk; waits_nbd=$pid
timeout "$TIMEOUT_S" qemu-io -r -f raw "nbd+unix:///disk?socket=$tmp/waits-nbd.sock" \
	<"$tmp/commands" >"$tmp/qemu-io.log" 2>&1 &
qemu=$!
exec 8>"$tmp/commands"
echo 'read 0 4k' >&8
wait_line "$tmp/qemu-io.log" 'read 4096/4096'
start_bench_as waits-bench; waits_bench=$pid
start_held
for t in "/proc/$silent_server/task"/*; do
	[ "${t##*/}" = "$silent_server" ] || threads+=("${t##*/}")
done
hold "${threads[@]}"
echo 'read 0 4k' >&8
in_flight() {
	timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/waits-nbd.ctl" --json clients |
		grep -q '"inflight":1'
}
wait_until "the read to be in flight" in_flight
for pid in "$held_server" "$held_nbd" "$held_bench" "$waits_nbd" "$waits_bench" "$nbdkit_pid"; do
	kill -TERM "$pid"
done
expect_exit "$waits_nbd" 0
expect_exit "$waits_bench" 1
for name in nbd bench; do
	must_fail grep 'shutdown has taken' "$tmp/waits-$name.log"
done
grep 'requests are still in flight at the end' "$tmp/waits-nbd.log"
grep '1 request had no answer when rtrs-nbd stopped' "$tmp/waits-nbd.log"
expect_exit "$nbdkit_pid" 0
grep 'requests are still in flight at the end' "$nbdkit_log"
must_fail grep 'no sign of life' "$nbdkit_log"
echo ended >"$tmp/ended"
expect_exit "$client" 0
stop_server "$server_pid"
[ "$(head -c 512 "$tmp/image" | tr -d a | wc -c)" = 0 ]
wait_line "$tmp/held-server.log" 'error: shutdown has taken 60 s: .* for '
wait_line "$tmp/held-nbd.log" 'shutdown has taken 60 s: .* for its threads'
wait_line "$tmp/held-bench.log" 'shutdown has taken 60 s: .* for requests in flight'
for pid in "$held_server" "$held_nbd" "$held_bench"; do
	wait_until "the end of $pid" process_ended "$pid"
done
release
for pid in "$held_server" "$held_nbd" "$held_bench"; do
	expect_exit "$pid" 1
done
echo quit >&8
exec 8>&-
wait "$qemu" || true
exit 0
