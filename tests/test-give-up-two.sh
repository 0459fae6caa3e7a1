#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Writes to two exports are given up after io-timeout.  When the server is back both are settled at
# once: no request to one of them fails because the other one was opened after it.
. ./tests/functions.sh
requires_server; requires_plugin
# In valgrind the storage is done before the device is opened again, and there is nothing to settle.
requires_plain_build
requires nbdsh --version

truncate -s 1M "$tmp/one" "$tmp/two"
exports=("one=$tmp/one" "two=$tmp/two")
start_server "${exports[@]}"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" io-timeout=1 control="$tmp/ctl"

mkfifo "$tmp/ready" "$tmp/stopped" "$tmp/sent" "$tmp/failed" "$tmp/back"
sock=$sock tmp=$tmp nbdsh -c - <<'END' &
import os

def say(name):
    with open(os.environ["tmp"] + "/" + name, "w") as f:
        f.write(name + "\n")

def hear(name):
    with open(os.environ["tmp"] + "/" + name) as f:
        assert f.readline() == name + "\n"

hs = [nbd.NBD(), nbd.NBD()]
for h, name in zip(hs, ("one", "two")):
    h.connect_uri("nbd+unix:///%s?socket=%s" % (name, os.environ["sock"]))
    h.pwrite(b"a" * 4096, 0)
say("ready")
hear("stopped")
cookies = [h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(4096)), 0) for h in hs]
say("sent")
for h, cookie in zip(hs, cookies):
    try:
        while not h.aio_command_completed(cookie):
            h.poll(-1)
    except nbd.Error as e:
        assert e.errno == "EIO", e
    else:
        raise SystemExit("answered by nobody")
say("failed")
hear("back")
for h in hs:
    h.pread(512, 0)
END
client=$!
hear() {
	read -r -t "$TIMEOUT_S" word <"$tmp/$1"
	[ "$word" = "$1" ]
}
hear ready
stop_all_threads "$server_pid"
echo stopped >"$tmp/stopped"
hear sent
# Sent by libnbd is not yet sent to the server; what was not sent is not settled either.
both_in_flight() {
	timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/ctl" --json stats |
		grep -q '"inflight":2,'
}
wait_until "both writes to be in flight" both_in_flight
kill_process "$server_pid"
hear failed
start_server --listen "tcp://127.0.0.1:$port" "${exports[@]}"
wait_line "$nbdkit_log" 'connected again'
echo back >"$tmp/back"
expect_exit $client 0
for name in one two; do
	grep -q "$name: waits for the end of abandoned requests" "$nbdkit_log"
done
must_fail grep 'not open for' "$nbdkit_log"
