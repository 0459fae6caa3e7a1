#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One connection ends right behind an answer, in the same segment, and no request follows: the
# client notices at once and comes back.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

# The end of the last connection follows the answer that comes while $tmp/cut exists.
proxy() {
	exec python3 - "$tmp" "$1" <<'END'
import os, socket, sys, threading

tmp, port = sys.argv[1], int(sys.argv[2])
last = None

def pump(a, b, cuts):
    while data := a.recv(1 << 20):
        if cuts and a is last and os.path.exists(tmp + "/cut"):
            os.unlink(tmp + "/cut")
            b.send(data, socket.MSG_MORE)
            break
        b.sendall(data)
    try:
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass

listener = socket.create_server(("127.0.0.1", 0))
with open(tmp + "/port.new", "w") as f:
    f.write(str(listener.getsockname()[1]))
os.rename(tmp + "/port.new", tmp + "/port")
while True:
    client = listener.accept()[0]
    server = socket.create_connection(("127.0.0.1", port))
    for s in client, server:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    last = server
    for args in (client, server, False), (server, client, True):
        threading.Thread(target=pump, args=args, daemon=True).start()
END
}

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
proxy "$server_port" &
proxy=$!
cleanup_fn kill_process $proxy
wait_until "the proxy" test -s "$tmp/port"
start_nbdkit "server=127.0.0.1:$(cat "$tmp/port")" export=disk connections=1 "io-timeout=$TIMEOUT_S"

nbdsh_run "$uri" <<'END'
h.pread(4096, 0)
END
touch "$tmp/cut"
nbdsh_run "$uri" <<'END'
h.pread(4096, 0)
END
[ ! -e "$tmp/cut" ] || fail "the answer did not come over the last connection"
wait_line "$nbdkit_log" "lost: connection 1: peer closed"
nbdsh_run "$uri" <<'END'
h.pread(4096, 0)
END
wait_line "$nbdkit_log" "connected again"
