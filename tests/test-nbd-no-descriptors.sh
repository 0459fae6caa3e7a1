#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NBD clients have taken all descriptors that rtrs-nbd gives away (RLIMIT_NOFILE): the others wait
# in the queue of the socket.  A path that is lost comes back all the same, and commands are
# answered.
. ./tests/functions.sh
requires_server; requires_gateway
requires_plain_build

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
server=127.0.0.1:$server_port
prlimit --nofile=64 "$RTRS_NBD" -f -U "$tmp/sock" -P "$tmp/pid" "server=$server" export=disk \
	transport=tcp connections=4 control="$tmp/ctl" </dev/null >"$tmp/gateway.log" 2>&1 &
gateway=$!
cleanup_fn stop_process "$gateway"
wait_until "rtrs-nbd" nbdkit_ready_or_ended "$gateway" "$tmp/pid"
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/ctl")

# The limit is named when a client waits, not when the last one has been accepted.
cat >"$tmp/fill.py" <<'END'
import os, socket, sys

sock, pid, log, limit = sys.argv[1:]

def accepted():
    """The descriptors of the gateway that are sockets of this name, less the one that listens."""
    mine = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    rows = (line.split() for line in open("/proc/net/unix"))
    return sum(row[-1] == sock and f"socket:[{row[6]}]" in mine for row in rows) - 1

named = lambda: "cannot accept a client now" in open(log).read()
held = []
while not named() and len(held) < int(limit):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(0.01)
    s.connect(sock)
    held.append(s)
    # The greeting comes behind the pass in which the client was accepted.
    while not named():
        try:
            s.recv(18)
            break
        except TimeoutError:
            pass
if not named() or accepted() != len(held) - 1:
    sys.exit(f"{len(held)} clients, {accepted()} accepted")
END
uri="nbd+unix:///disk?socket=$tmp/sock"
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
timeout "$TIMEOUT_S" /usr/bin/python3 "$tmp/fill.py" "$tmp/sock" "$gateway" "$tmp/gateway.log" 64
timeout "$TIMEOUT_S" nbdinfo --size "$uri"

# More than there can be: who is not accepted waits.
cat >"$tmp/hold.py" <<'END'
import socket, sys

held = []
for i in range(100):
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(sys.argv[1])
    except BlockingIOError:
        pass
    held.append(s)
with open(sys.argv[2], "w") as f:
    f.write("held\n")
sys.stdin.readline()
END
mkfifo "$tmp/held" "$tmp/end"
timeout $((4 * TIMEOUT_S)) /usr/bin/python3 "$tmp/hold.py" "$tmp/sock" "$tmp/held" <"$tmp/end" &
holder=$!
exec 8>"$tmp/end"
read -r -t "$TIMEOUT_S" word <"$tmp/held"
[ "$word" = held ]
told() { grep -c 'cannot accept a client now: .*RLIMIT_NOFILE is 64' "$tmp/gateway.log" || true; }
told_more() { [ "$(told)" -gt "$before" ]; }
before=1
wait_until "the limit" told_more
"${ctl[@]}" clients >"$tmp/clients"
[ "$(grep -c '^client\|client [0-9]' "$tmp/clients")" -gt 20 ]

# The descriptors of the path that is lost are not given to clients that wait.
kill_process "$server_pid"
wait_line "$tmp/gateway.log" 'lost: .*reconnecting'
before=$(told)
wait_until "the next try to accept" told_more
start_server --listen "tcp://$server" "disk=$tmp/disk"
wait_line "$tmp/gateway.log" 'connected again'
must_fail grep 'path .*Too many open files' "$tmp/gateway.log"
"${ctl[@]}" clients >"$tmp/clients"

echo end >&8
expect_exit "$holder" 0
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
