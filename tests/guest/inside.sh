#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a guest: run the tests that run-tests.sh has put into /run/guest/tests one after the other,
# lines of LIMIT-IN-SECONDS NAME SCRIPT.  Leaves NAME.log and, when it has ended, NAME.seconds and
# NAME.status in /run/guest.
#
# Beside its own status a test fails when it leaves a process, when a module that it loaded cannot
# be unloaded, or when the kernel complained.
set -u
guest=/run/guest
# shellcheck source=tests/guest/kernel-log.sh
. "$(dirname "${BASH_SOURCE[0]}")/kernel-log.sh"
# D (died), B (bad page), L (soft lockup), W (warning) of /proc/sys/kernel/tainted.
bad_taint=$((1 << 7 | 1 << 5 | 1 << 14 | 1 << 9))

modules() {
	cut -d ' ' -f 1 /proc/modules | sort
}

taint() {
	echo $(($(cat /proc/sys/kernel/tainted) & bad_taint))
}

ended() {
	[ ! -d "/proc/$1" ] || grep -q -E '^State:[[:space:]]+[ZX]' "/proc/$1/status" 2>/dev/null
}

# Until nothing goes any more; what a module holds may take a moment to let go.
unload_new() {
	local deadline=$((SECONDS + 20)) left

	while left=$(comm -13 <(printf '%s\n' "$1") <(modules)) && [ -n "$left" ]; do
		# shellcheck disable=SC2086 # words
		rmmod $left 2>/dev/null && continue
		if [ $SECONDS -ge $deadline ]; then
			printf 'FAIL: modules that cannot be unloaded:\n%s\n' "$left"
			return 1
		fi
		sleep 0.1
	done
}

# The RDMA devices of stage2.sh: the next test has them whatever this one has done.
rxe_devices() {
	local dev rxe status=0

	for dev in /sys/class/net/eth*; do
		rxe=rxe${dev##*/eth}
		[ -e "/sys/class/infiniband/$rxe" ] && continue
		echo "FAIL: $rxe is gone"
		rdma link add "$rxe" type rxe netdev "${dev##*/}"
		status=1
	done
	return $status
}

# Kernel messages since the test began; all that are left when they were many.
messages() {
	dmesg | awk -v mark="guest: $1 begins" 'index($0, mark) { n = 0 } { a[n++] = $0 }
		END { for (i = 0; i < n; i++) print a[i] }'
}

# after NAME SESSION MODULES TAINT: what the test has left behind.
after() {
	local status=0 left

	left=$(ps -o pid=,stat=,args= -s "$2")
	if [ -n "$left" ]; then
		printf 'FAIL: processes are left:\n%s\n' "$left"
		pkill -KILL -s "$2"
		status=1
	fi
	unload_new "$3" || status=1
	rxe_devices || status=1
	if messages "$1" | kernel_complains || [ "$(taint)" -ne "$4" ]; then
		echo "FAIL: the kernel complained (taint $(cat /proc/sys/kernel/tainted))"
		status=1
	fi
	return $status
}

# run LIMIT NAME SCRIPT
run() {
	local limit=$1 name=$2 script=$3 status=0 pid deadline modules_before taint_before
	local log=$guest/$name.log began=$SECONDS

	modules_before=$(modules) taint_before=$(taint)
	echo "guest: $name begins" >/dev/kmsg
	echo "$name" >$guest/running
	# Its own session, by which its processes are known.
	setsid timeout -k 10 "$limit" bash "$script" </dev/null >"$log" 2>&1 &
	pid=$!
	deadline=$((SECONDS + limit + 30))
	until ended $pid; do
		if [ $SECONDS -ge $deadline ]; then
			# The kernel holds it: nothing that follows here can be trusted.
			echo w >/proc/sysrq-trigger
			{ echo "FAIL: cannot be killed, $limit s after its start"; messages "$name"; } >>"$log"
			echo 1 >"$guest/$name.status"
			exit 1
		fi
		sleep 0.1
	done
	wait $pid || status=$?
	[ $status -ne 124 ] || echo "FAIL: not done after $limit s" >>"$log"
	after "$name" $pid "$modules_before" "$taint_before" >>"$log" 2>&1 || status=1
	{ echo "---- kernel"; messages "$name"; } >>"$log"
	echo $((SECONDS - began)) >"$guest/$name.seconds"
	echo $status >"$guest/$name.status"
}

echo 60 >/proc/sys/kernel/hung_task_timeout_secs 2>/dev/null
while read -r limit name script; do
	run "$limit" "$name" "$script"
done <$guest/tests
exit 0
