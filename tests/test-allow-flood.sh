#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Strangers whom --allow does not let in are told so when they connect, before they have said a
# word, and cost nobody else the connection that is being set up, however many they are.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version
requires /usr/bin/python3 --version

truncate -s 1M "$tmp/disk"
start_server --allow 127.0.0.1 "disk=$tmp/disk"

# More than the server lets be silent at a time (256), from an address that is not let in.  The one
# that is has connected before all of them and has nothing to say yet.
timeout $((4 * TIMEOUT_S)) /usr/bin/python3 - "$server_port" <<'END'
import select, socket, sys
server = ("127.0.0.1", int(sys.argv[1]))
honest = socket.create_connection(server, source_address=("127.0.0.1", 0))
others = []
for i in range(600):
    s = socket.create_connection(server, source_address=("127.0.0.2", 0))
    others.append(s)
for i, s in enumerate(others):
    s.settimeout(30)
    frame = b""
    while chunk := s.recv(4096):
        frame += chunk
    # A header of 24 bytes and a CONN_RSP of 56, see rtrs-protocol(7); then the end.
    assert len(frame) == 80, "connection %d got %d bytes" % (i, len(frame))
assert not select.select([honest], [], [], 0)[0], "the one that is let in was sent away"
END

wait_line "$server_log" '127\.0\.0\.2:.*refused: this address is in no --allow rule'
start_nbdkit "server=127.0.0.1:$server_port" export=disk
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 1048576 ]
