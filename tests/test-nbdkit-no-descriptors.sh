#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Too few descriptors for nbdkit (RLIMIT_NOFILE).  From hardly enough to connect on it does not
# start, and says why; with enough to start clients are served, and the one that is too many is sent
# away, not kept waiting.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires nbdsh --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
server=127.0.0.1:$server_port

started_one() { [ -s "$tmp/pid" ] || process_ended "$pid"; }

failed=0
for ((n = 12; n < 100; n++)); do
	rm -f "$tmp/pid"
	prlimit --nofile="$n" nbdkit -f -U "$tmp/sock" -P "$tmp/pid" \
		"$RTRS_PLUGIN" "server=$server" \
		export=disk transport=tcp connections=4 </dev/null >"$tmp/nbdkit.log" 2>&1 &
	pid=$!
	wait_until "nbdkit" started_one
	[ ! -s "$tmp/pid" ] || break
	expect_exit "$pid" 1
	grep "RLIMIT_NOFILE is $n: raise it, " "$tmp/nbdkit.log"
	failed=$((failed + 1))
done
cleanup_fn stop_process "$pid"
[ "$failed" -gt 10 ] || fail "only $failed starts failed: the limits do not reach"

# The first n that it starts with: one client at least has its place, whatever many others meet.
cat >"$tmp/clients.py" <<'END'
import nbd, os, sys, time

fds = "/proc/%s/fd" % sys.argv[2]

# One at a time: nbdkit has a few descriptors for a connection before the plugin knows of it, and
# until some time after its end.
def connect():
    most = len(os.listdir(fds))
    h = nbd.NBD()
    try:
        h.connect_unix(sys.argv[1])
        assert h.pread(512, 0) == bytearray(512)
    except nbd.Error:
        del h
        while len(os.listdir(fds)) > most:
            time.sleep(0.001)
        raise
    return h

clients, refused = [], None
while not refused:
    assert len(clients) < 100
    try:
        clients.append(connect())
    except nbd.Error as e:
        refused = e
print(len(clients), "clients, then:", refused)
assert clients
# As often as it tries, and the others do not notice.
for i in range(50):
    try:
        connect()
    except nbd.Error:
        pass
    else:
        raise SystemExit("taken")
for h in clients:
    assert h.pread(512, 0) == bytearray(512)
# There is room when one goes.
clients.pop().shutdown()
while True:
    try:
        clients.append(connect())
        break
    except nbd.Error:
        pass
for h in clients:
    h.shutdown()
END
timeout "$TIMEOUT_S" /usr/bin/python3 "$tmp/clients.py" "$tmp/sock" "$pid"
grep "connection refused: too few descriptors for another client (RLIMIT_NOFILE is $n: raise it, .*)" \
	"$tmp/nbdkit.log"
must_fail grep -E 'accept:|pipe2:' "$tmp/nbdkit.log"

# While the server is away the descriptors of the session are not given to clients.
kill_process "$server_pid"
wait_line "$tmp/nbdkit.log" 'lost: .*reconnecting'
cat >"$tmp/hold.py" <<'END'
import os, socket, sys

# What a client costs before it has said a word.
held = []
while len(held) < 100:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    if not s.recv(8):
        break
    held.append(s)
assert len(held) < 100
with open(sys.argv[2], "w") as f:
    f.write("held\n")
with open(sys.argv[3]) as f:
    assert f.readline() == "back\n"
END
mkfifo "$tmp/held" "$tmp/back"
timeout $((2 * TIMEOUT_S)) /usr/bin/python3 "$tmp/hold.py" "$tmp/sock" "$tmp/held" "$tmp/back" &
holder=$!
read -r -t "$TIMEOUT_S" word <"$tmp/held"
[ "$word" = held ]
start_server --listen "tcp://$server" "disk=$tmp/disk"
wait_line "$tmp/nbdkit.log" 'connected again'
must_fail grep 'Too many open files' "$tmp/nbdkit.log"
echo back >"$tmp/back"
expect_exit $holder 0
