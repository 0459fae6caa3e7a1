#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# poll= and --poll: data is right at depth, and nothing is looked for while no request is in flight:
# idle costs no processor.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --version
requires nbdsh --version

truncate -s 16M "$tmp/disk"
start_server --poll=200 "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk poll=200

fio --name=verify --ioengine=nbd --uri="$uri" --rw=randwrite --bs=4k --iodepth=16 --size=8M \
	--verify=crc32c \
	--verify_state_save=0 --verify_fatal=1 >"$tmp/fio.log" 2>&1 ||
	{ cat "$tmp/fio.log"; fail "fio"; }
fio --name=one --ioengine=nbd --uri="$uri" --rw=randread --bs=4k --iodepth=1 --size=4M \
	>"$tmp/fio.log" 2>&1 || { cat "$tmp/fio.log"; fail "fio at depth 1"; }

if [ -n "${VALGRIND_TESTS-}" ]; then
	echo "not looked at: what idle costs, because valgrind takes processor time of its own"
	exit 0
fi
# Heartbeats come every 5 s: in 6 s that is a few looks of 200 us.
idle_for 6 "$server_pid" "$nbdkit_pid"
[ "$idle_ticks" -le 6 ] || fail "idle for 6 s, and $idle_ticks ticks of CPU time were used"

# With many requests a thread of the connection polls, and has nothing to wait for after the last
# answer.
start_nbdkit "server=127.0.0.1:$server_port" export=disk poll=1000000 connections=1
export nbdkit_pid
nbdsh_run "$uri" <<'END'
import os, time

def ticks():
    with open("/proc/" + os.environ["nbdkit_pid"] + "/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])

used = 0
for burst in range(3):
    cookies = [h.aio_pread(nbd.Buffer(4096), i * 4096) for i in range(32)]
    while cookies:
        h.poll(-1)
        cookies = [c for c in cookies if not h.aio_command_completed(c)]
    before = ticks()
    time.sleep(1.2)     # longer than it would look
    used += ticks() - before
assert used <= 15, "%u ticks in 3 bursts' wake" % used
END
