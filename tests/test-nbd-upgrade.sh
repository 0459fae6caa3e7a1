#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An upgrade of rtrs-nbd below a socket of its starter: the first process says that it is ready and
# that it stops; a client that comes in between waits in the queue of the socket; the next process
# serves that client, and QEMU with reconnect-delay, none of whose requests fails.
. ./tests/functions.sh
requires_server; requires_gateway
requires qemu-io --version
requires nbdinfo --version
requires ss --version

truncate -s 16M "$tmp/disk"
start_server "disk=$tmp/disk"

# The starter keeps both sockets, and starts a process for each line of its input.  What the
# processes tell becomes a line of its output.
cat >"$tmp/starter.py" <<'END'
import os, socket, subprocess, sys, threading
path, *argv = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(8)
told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.bind(path + ".notify")

def tell():
    while True:
        print(told.recv(4096).decode(), flush=True)

def give():
    os.dup2(listener.fileno(), 3)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), NOTIFY_SOCKET=path + ".notify")

threading.Thread(target=tell, daemon=True).start()
for line in sys.stdin:
    p = subprocess.Popen(argv, preexec_fn=give, pass_fds=[3], stdin=subprocess.DEVNULL)
    print("PID=%d" % p.pid, flush=True)
    print("STATUS=%d" % p.wait(), flush=True)
END
mkfifo "$tmp/starts"
# shellcheck disable=SC2046 # words
/usr/bin/python3 "$tmp/starter.py" "$tmp/nbd.sock" $(wrapper) "$RTRS_NBD" \
	"server=127.0.0.1:$server_port" export=disk \
	<"$tmp/starts" >"$tmp/told" 2>"$tmp/gateway.log" &
starter_pid=$!
exec 7>"$tmp/starts"
pid=0
end_of_starter() {
	kill -TERM "$pid" 2>/dev/null || true
	exec 7>&-
	expect_exit "$starter_pid" 0
}
cleanup_fn end_of_starter
told_times() {
	[ "$(grep -c -x "$1" "$tmp/told")" -eq "$2" ]
}
# next N: start the N-th process.
next() {
	echo start >&7
	wait_until "READY=1 of process $1" told_times READY=1 "$1"
	pid=$(sed -n 's/^PID=//p' "$tmp/told" | tail -n 1)
}

next 1
mkfifo "$tmp/commands"
timeout $((4 * TIMEOUT_S)) qemu-io --image-opts \
	"driver=nbd,server.type=unix,server.path=$tmp/nbd.sock,export=disk,reconnect-delay=60" \
	<"$tmp/commands" >"$tmp/qemu-io.log" 2>&1 7>&- &
qemu_pid=$!
exec 8>"$tmp/commands"
echo 'write -P 1 0 64k' >&8
wait_line "$tmp/qemu-io.log" 'wrote 65536/65536'
for i in {1..200}; do
	echo "aio_write -P $i $((i * 64))k 64k"
done >&8

kill -TERM "$pid"
wait_until "STATUS=0" told_times STATUS=0 1
wait_until "STOPPING=1" told_times STOPPING=1 1
[ -S "$tmp/nbd.sock" ] || fail "the socket of the starter is gone"
nbdinfo --size "nbd+unix:///?socket=$tmp/nbd.sock" >"$tmp/size" 7>&- 8>&- &
info_pid=$!
# It is in the queue: it has connected, and nobody has answered.
connected() {
	# To the end: a reader that leaves early ends ss on a machine with many sockets.
	ss -Hxp state established | grep "pid=$info_pid," >/dev/null
}
wait_until "a client in the queue" connected

next 2
expect_exit "$info_pid" 0
[ "$(cat "$tmp/size")" -eq $((16 << 20)) ]
{
	echo aio_flush
	for i in {1..200}; do
		echo "read -P $i $((i * 64))k 64k"
	done
	echo quit
} >&8
exec 8>&-
expect_exit "$qemu_pid" 0
grep -i -E 'failed|error' "$tmp/qemu-io.log" && fail "a request failed"
[ "$(grep -c 'wrote 65536/65536' "$tmp/qemu-io.log")" -eq 201 ]
[ "$(grep -c 'read 65536/65536' "$tmp/qemu-io.log")" -eq 200 ]
kill -TERM "$pid"
wait_until "the end of both" told_times STATUS=0 2
[ ! -s "$tmp/gateway.log" ] || fail "rtrs-nbd says something"
