#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sizes come from the control group that a program runs in, as in a container: memory of clients,
# threads, connections.  In a group of 128 MiB a server with more clients than fit there refuses
# some, and lives.  Version 2 of control groups, folders of containers: tests/unit/test-machine.c.
. ./tests/functions.sh
requires_server; requires_gateway
requires_root
requires_plain_build
requires findmnt --version
requires curl --version

# group_dir CONTROLLER: where a group can be made.
group_dir() {
	local dir
	dir=$(findmnt -n -t cgroup -O "$1" -o TARGET | head -n 1)
	[ -z "$dir" ] || { echo "$dir"; return; }
	dir=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
	[ -n "$dir" ] && grep -q -w "$1" "$dir/cgroup.subtree_control" && echo "$dir"
}
# new_group CONTROLLER FILE=VALUE...: sets group, with the files of either version that are there.
# In version 2 a process has one group, for all controllers.
new_group() {
	local setting file value
	group=$(group_dir "$1") || skip "no control groups with $1 here: nothing was tried"
	group=$group/rtrs-test.$$
	if [ ! -d "$group" ]; then
		mkdir "$group" 2>/dev/null ||
			skip "cannot make a control group with $1 here: nothing was tried"
		cleanup_fn rmdir "$group"
	fi
	for setting in "${@:2}"; do
		file=${setting%%=*} value=${setting#*=}
		[ ! -e "$group/$file" ] || echo "$value" >"$group/$file" ||
			skip "cannot limit a control group here: nothing was tried"
	done
}
new_group memory memory.limit_in_bytes=128M memory.max=128M
memory=$group
new_group cpu cpu.cfs_quota_us=100000 cpu.max='100000 100000'
cpu=$group
cat >"$tmp/in.sh" <<SH
echo \$\$ >"$memory/cgroup.procs"
echo \$\$ >"$cpu/cgroup.procs"
exec "\$@"
SH

truncate -s 1M "$tmp/disk"
SERVER_PREFIX="sh $tmp/in.sh" start_server --listen "unix:$tmp/rtrs.sock" \
	--metrics "unix:$tmp/metrics.sock" "disk=$tmp/disk"
grep -q -x "$server_pid" "$memory/cgroup.procs" &&
	grep -q -x "$server_pid" "$cpu/cgroup.procs" ||
	skip "a process cannot go into a group here"
limit=$(curl --silent --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics.sock" \
	http://localhost/metrics | sed -n 's/^rtrs_server_memory_limit_bytes //p')
[ "$limit" = $((64 << 20)) ] || fail "the limit of memory is '$limit'"

# Each would take 17 MB.
pids=()
for n in {1..10}; do
	"$top_builddir/rtrs-bench" --rw=write --bs=128K --iodepth=128 --runtime=3 --size=1M \
		"unix:$tmp/rtrs.sock" disk >"$tmp/bench$n.out" 2>&1 &
	pids+=($!)
done
done=0 refused=0
for n in {1..10}; do
	status=0
	wait "${pids[n - 1]}" || status=$?
	[ $status -ne 0 ] || done=$((done + 1))
	[ $status -ne 1 ] || refused=$((refused + 1))
done
echo "$done clients were served, $refused refused"
[ "$done" -ge 1 ]
[ "$refused" -ge 1 ]
[ $((done + refused)) -eq 10 ]
grep -h 'memory' "$tmp"/bench*.out "$server_log" | head -n 3
must_fail process_ended "$server_pid"

# A CPU's share, and room for one thread's largest request.
GATEWAY_PREFIX="sh $tmp/in.sh" start_gateway "server=unix:$tmp/rtrs.sock" export=disk \
	control="$tmp/gate.ctl"
threads=$(cat "/proc/$gateway_pid/task/"*/comm | grep -c -E '^rtrs-(service|io)')
[ "$threads" -eq 1 ] || fail "$threads threads serve"
# The memory of the session that tried the server out may be free a moment later than it ends: then
# the lasting session is refused at first.
connected() {
	status=$(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/gate.ctl" --json \
		status)
}
wait_until "the path" connected
[[ $status == *'"connections":3,'* ]] || fail "not 2 connections for requests"
