#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SIGTERM ends the server with status 0 while requests are in flight; what was acknowledged is in
# the file.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

truncate -s 64M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk io-timeout=1

export server_pid acked=$tmp/acked
nbdsh_run "$uri" <<'END'
import os, signal

N = 4096
acked = []
pending = {}
sent = done = 0
failed = False
while not failed or pending:
    while not failed and len(pending) < 32:
        block = sent % N
        data = (b"%08d" % sent) * 1024
        pending[h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), block * 8192)] = (block, sent)
        sent += 1
        assert sent < N, "the server did not end"
    for c in list(pending):
        try:
            if not h.aio_command_completed(c):
                continue
        except nbd.Error as e:
            assert e.errno == "EIO", e
            failed = True
        else:
            acked.append(pending[c])
            done += 1
            if done == 300:
                os.kill(int(os.environ["server_pid"]), signal.SIGTERM)
        del pending[c]
    if pending:
        h.poll(100)
assert len(acked) >= 300
with open(os.environ["acked"], "w") as f:
    f.writelines("%d %d\n" % a for a in acked)
END
expect_exit "$server_pid" 0
stopped="$stopped$server_pid "
/usr/bin/python3 - "$(stored "$tmp/disk")" "$tmp/acked" <<'END'
import sys
disk = open(sys.argv[1], "rb").read()
for line in open(sys.argv[2]):
    block, number = map(int, line.split())
    assert disk[block * 8192:block * 8192 + 8192] == (b"%08d" % number) * 1024, line
END
