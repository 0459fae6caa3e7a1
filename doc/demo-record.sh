#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Records what doc/demo.svg shows: a load over two paths, while one cable is pulled and while the
# server is killed.
#
#	demo-record.sh FILE [PULL PLUG KILL START END]		milliseconds; in the top build directory
#
# The machines and cables are those of tests/wires.sh.  Nobody is told of either fault.  FILE is
# written only if no request failed.  The load does not verify: for that fio waits now and then
# until nothing is in flight, and it would wait for what a cut cable holds back while the other path
# is free.  tests/test-paths.sh has one that verifies.
#
# FILE is CSV, a line for each tenth of a second: requests that were answered in it, how long half
# of them and the slowest took, and bytes over each cable.  The lines in front, with a '#', are the
# load and the events.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
recording=$(realpath "$1")
pull_ms=${2:-8000} plug_ms=${3:-14000} kill_ms=${4:-20000} start_ms=${5:-21000} end_ms=${6:-30000}
requires_server; requires_plugin
requires fio --enghelp=nbd
# How long requests take is what this is about.
requires_plain_build
HEARTBEAT_MS=200
DETECT_MS=$((HEARTBEAT_MS * (HEARTBEAT_MISSES + 2)))

# at MS: of the recording
at() {
	local left_us=$((begin_us + $1 * 1000 - ${EPOCHREALTIME/./}))
	[ $left_us -le 0 ] ||
		pause "$(printf '%d.%06d' $((left_us / 1000000)) $((left_us % 1000000)))"
}

# event NAME: now
event() {
	echo "$1 ${EPOCHREALTIME/./}" >>"$tmp/events"
}

# What went over each cable, ten times a second or as often as this machine can.
watch_cables() {
	# No function, which would be a process around it.  shellcheck disable=SC2086 # words
	$CLIENT_NET python3 - >"$tmp/cables" <<'END' &
import time
while True:
    with open("/proc/net/dev") as f:
        lines = [line.replace(":", " ").split() for line in f]
    carried = {words[0]: int(words[1]) + int(words[9]) for words in lines if words[0] in ("net1", "net2")}
    print(time.time_ns() // 1000, carried["net1"], carried["net2"], flush=True)
    time.sleep(0.1 - time.time() % 0.1)
END
	cleanup_fn kill_process $!
}

# For load_end, and with a line for each request.
load_logged() {
	(cd "$tmp" &&
		exec fio --name=load --ioengine=nbd --uri="$uri" --rw=randrw --bs=4k --size=16M \
			--iodepth=8 \
		--time_based --runtime=1h --eta=never --write_lat_log=load --log_unix_epoch=1 \
		--output-format=json --output=load.json) >"$tmp/load.log" 2>&1 &
	load=$!
	cleanup_fn load_kill "$load"
}

wires_up
truncate -s 16M "$tmp/disk"
serve "disk=$tmp/disk"
connect export=disk
watch_cables
load_logged
carries 1
carries 2

begin_us=${EPOCHREALTIME/./}
event begin
at "$pull_ms"
event pull
pull 1
wait_line "$nbdkit_log" "path .*10\.77\.1\.2:1234: lost: .*no sign of life"
event lost
at "$plug_ms"
event plug
plug 1
wait_line "$nbdkit_log" "path .*10\.77\.1\.2:1234: connected again"
event again
at "$kill_ms"
event kill
kill_process "$server_pid"
at "$start_ms"
serve "disk=$tmp/disk"
event start
wait_until "both paths" paths_up 2
event both
at "$end_ms"
event end
carries 1
carries 2
load_end $((start_ms - kill_ms + 2 * (DETECT_MS + SLACK_MS)))

python3 - "$tmp" "$HEARTBEAT_MS" "$HEARTBEAT_MISSES" >"$tmp/recording" <<'END'
import bisect, collections, statistics, sys
STEP_US = 100000
tmp, interval, misses = sys.argv[1:]

def rows(name):
    with open(f"{tmp}/{name}") as f:
        return [line.replace(",", " ").split() for line in f]

events = [(name, int(us)) for name, us in rows("events")]
begin, end = events[0][1], events[-1][1]
nsteps = (end - begin) // STEP_US
took = collections.defaultdict(list)
for ms, ns, *_ in rows("load_lat.1.log"):
    took[(int(ms) * 1000 - begin) // STEP_US].append(int(ns) / 1000)

cables = [tuple(map(int, row)) for row in rows("cables") if len(row) == 3]
times = [row[0] for row in cables]

def carried(us, n):
    """Bytes over cable N until then; between two samples in proportion."""
    i = min(max(bisect.bisect(times, us), 1), len(cables) - 1)
    a, b = cables[i - 1], cables[i]
    return a[n] + (b[n] - a[n]) * (us - a[0]) / (b[0] - a[0])

print("# load,fio: 4 KiB; random reads and writes; 8 in flight")
print(f"# paths,two paths over tcp; heartbeat={interval} heartbeat-misses={misses}")
for name, us in events[1:-1]:
    print(f"# {name},{(us - begin) / 1e6:.2f}")
print("seconds,requests,p50_us,max_us,bytes_1,bytes_2")
for step in range(nsteps):
    us = begin + step * STEP_US
    lat = took[step]
    half, most = (f"{statistics.median(lat):.0f}", f"{max(lat):.0f}") if lat else ("", "")
    bytes_n = [f"{carried(us + STEP_US, n) - carried(us, n):.0f}" for n in (1, 2)]
    print(f"{step / 10:.1f},{len(lat)},{half},{most},{','.join(bytes_n)}")
END
mv "$tmp/recording" "$recording"
