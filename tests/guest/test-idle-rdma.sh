#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=200 full
# guest: kernel=6.12 timeout=200 full
# Sessions over RDMA that do nothing wake up for heartbeats and for nothing else.  Here it is 16 of
# them, because each takes a second to start, and no CPU time, which means nothing here: see
# tests/test-idle.sh.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
[ -x ./fab-conformance-verbs ] || skip "built without rdma-core"

sessions=16 seconds=20
truncate -s 16M "$tmp/disk"
start_server --listen "rdma://$ip4:1234" --queue-depth=16 "disk=$tmp/disk"
pids=()
for ((i = 0; i < sessions; i++)); do
	start_nbdkit "server=$ip4:1234" transport=rdma export=disk mode=ro connections=1
	pids+=("$nbdkit_pid")
done
idle_for $seconds "$server_pid" "${pids[@]}"
echo "$sessions sessions, $seconds s: $idle_wake_ups wake-ups, $idle_ticks ticks"
[ "$idle_wake_ups" -le $((sessions * seconds * 12 / 5)) ] || fail "$idle_wake_ups wake-ups"
[ "$idle_wake_ups" -ge $((sessions * seconds / 5)) ] || fail "no heartbeats, no measurement"
kill -TERM "${pids[@]}"
