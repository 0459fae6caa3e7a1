#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit is stopped (SIGTERM) while an NBD client is connected.  It waits until the client goes, and
# then does not call .close: it must end at once all the same, and the server must hear a CLOSE.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
# What nbdkit keeps of connections that it had when it was stopped is its own leak.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"

truncate -s 64M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
mkfifo "$tmp/connected" "$tmp/stopped"
tmp=$tmp nbdsh_run "$uri" <<'END' &
import os

h.pwrite(b"a" * 4096, 0)
with open(os.environ["tmp"] + "/connected", "w") as f:
    f.write("connected\n")
with open(os.environ["tmp"] + "/stopped") as f:
    assert f.readline() == "stopped\n"
END
client=$!
read -r -t "$TIMEOUT_S" word <"$tmp/connected"
[ "$word" = connected ]
pending() { sed -n 's/^ShdPnd:\t//p' "/proc/$nbdkit_pid/status"; }
taken() { [ $((0x$(pending) & 1 << 14)) -eq 0 ]; }
kill -TERM "$nbdkit_pid"
wait_until "nbdkit to take the signal" taken
echo stopped >"$tmp/stopped"
wait $client
stop_process "$nbdkit_pid"

# Not the one that tried it at the start.
session=$(sed -n -e '/-probe: /d' -e 's/.*info: \(.*\): device 0 opened: disk, rw$/\1/p' \
	"$server_log")
told() { sed -n "s/.*info: $session: //p" "$server_log"; }
closed() { told | grep -q "session closed"; }
wait_until "the end of the session" closed
told | sed 's/ by .*//' >"$tmp/told"
diff "$tmp/told" - <<'END'
session opened
device 0 opened: disk, rw
device 0 closed: disk
session closed
END
