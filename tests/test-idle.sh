#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 64 sessions that do nothing cost less than a fiftieth of a CPU: their two ends wake up for
# heartbeats, one of the client's in 750 ms, and for nothing else.  Over RDMA, with the kernel's
# interval: tests/guest/test-idle-rdma.sh.  And each of them takes less than half a megabyte of the
# server's memory.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build

sessions=64 seconds=20
truncate -s 16M "$tmp/disk"
# It writes all memory that is allocated, and what nobody uses is to cost nothing.
unset MALLOC_PERTURB_
# The limit counts what these sessions may use, 17 MB each, and a host gets a quarter of it.
start_server --max-memory=16G "disk=$tmp/disk"
rss_kb() {
	awk '$1 == "Rss:" { print $2 }' "/proc/$server_pid/smaps_rollup"
}
before=$(rss_kb)
pids=()
for ((i = 0; i < sessions; i++)); do
	start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=ro
	pids+=("$nbdkit_pid")
done
each=$((($(rss_kb) - before) / sessions))
echo "$each KB for each session"
[ "$each" -gt 0 ] && [ "$each" -lt 512 ] || fail "$each KB for each session"
idle_for $seconds "$server_pid" "${pids[@]}"
echo "$sessions sessions, $seconds s: $idle_wake_ups wake-ups, $idle_ticks ticks"
# Both ends have a tick, the client sends a heartbeat, the server answers: four wake-ups in 750 ms,
# or fewer when some coincide.  Six, as if the server asked, too, are too many.
[ "$idle_wake_ups" -le $((sessions * seconds * 1000 * 5 / 750)) ] || fail "$idle_wake_ups wake-ups"
[ "$idle_wake_ups" -ge $((sessions * seconds)) ] || fail "no heartbeats, no measurement"
# 5 % of a CPU: a slow and busy machine takes one of them for that, and who looks without end takes
# 100.
[ "$idle_ticks" -lt $((5 * seconds)) ] || fail "$idle_ticks ticks"
