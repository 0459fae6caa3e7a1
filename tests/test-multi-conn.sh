#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many NBD connections to one nbdkit see one disk: what one has flushed another reads, and they may
# come and go.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

truncate -s 16M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export uri
nbdsh_run "$uri" <<'END'
import os

assert h.can_multi_conn()
handles = []
for i in range(24):
    c = nbd.NBD()
    c.connect_uri(os.environ["uri"])
    handles.append(c)
for i, c in enumerate(handles):
    c.pwrite(bytes([i + 1]) * 4096, i * 4096)
handles[-1].flush()
for c in handles:
    got = c.pread(24 * 4096, 0)
    assert got == b"".join(bytes([i + 1]) * 4096 for i in range(24))
# Half of them leave without a word (with requests in flight that would abort nbdkit 1.32 itself:
# raw_send_socket: Assertion `sock >= 0').
handles = handles[1::2]
c = None
for c in handles:
    assert c.pread(4096, 0) == b"\1" * 4096
    c.shutdown()
assert h.pread(4096, 4096) == b"\2" * 4096
END
