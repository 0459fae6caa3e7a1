#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory as an export: an image goes in and comes out; a client that comes back to a server whose
# memory is another one does not take it for its disk.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdcopy --version
requires nbdsh --version

random_file "$tmp/image" $((8 << 20))
start_server mem=mem:8M
start_nbdkit "server=127.0.0.1:$server_port" export=mem io-timeout=1
nbdcopy "$tmp/image" "$uri"
cmp "$tmp/image" <(nbdcopy "$uri" -)

# Somebody has it open while the server is replaced.
mkfifo "$tmp/wrote" "$tmp/replaced"
export tmp
nbdsh_run "$uri" <<'END' &
import os

h.pwrite(b"\1" * 4096, 0)
with open(os.environ["tmp"] + "/wrote", "w") as f:
    f.write("wrote")
with open(os.environ["tmp"] + "/replaced") as f:
    f.read()
must_fail(lambda: h.pread(512, 0), "EIO", "another disk was taken for the one that is gone")
END
client=$!
read -r -t "$TIMEOUT_S" <"$tmp/wrote" || true
port=$server_port
stop_server "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" mem=mem:8M
wait_line "$nbdkit_log" 'cannot be opened again'
echo replaced >"$tmp/replaced"
expect_exit $client 0
