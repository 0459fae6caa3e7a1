#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The filter of system calls, tripped by an attacker in the process (forbidden-calls.c): a denied
# call fails with EPERM, is told in the log and counted, and the server goes on.  With
# --seccomp=log the call is made and told, with off made.  What the process may do: capabilities and
# no_new_privs, in all threads.
. ./tests/functions.sh
requires_server; requires_plain_build
requires curl --version
"$RTRS_SERVER" --help | grep -q -F 'filter calls (on)' || skip "built without libseccomp"

bench=$top_builddir/rtrs-bench
random_file "$tmp/disk" $((1 << 20))
cp "$top_builddir/.libs/forbidden-calls.so" "$tmp"
mkfifo "$tmp/calls" "$tmp/results"
export FORBIDDEN_CALLS=$tmp/calls FORBIDDEN_RESULTS=$tmp/results
# Read and written: neither end waits for the other one to open.
exec 7<>"$tmp/results" 8<>"$tmp/calls"
may_deny=yes
SERVER_PREFIX="env LD_PRELOAD=$tmp/forbidden-calls.so"

# made NAME: has the attacker make the call; sets err.
made() {
	local name
	echo "$1" >&8
	read -r -t "$TIMEOUT_S" name err <&7
	[ "$name" = "$1" ]
}
# denied_calls: as the metrics count.
denied_calls() {
	curl --silent --show-error --fail --max-time "$TIMEOUT_S" "$url" |
		sed -n 's/^rtrs_server_denied_calls_total //p'
}
start() {
	start_server --metrics 0 "$@" "disk=$tmp/disk"
	wait_line "$server_log" ' metrics: http://'
	url=$(sed -n 's/.* metrics: //p' "$server_log")
}
serves() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=1000 --iodepth=8 --rw=randrw --verify \
		"127.0.0.1:$server_port" disk
}
calls="execve clone ptrace process_vm_readv socket io_uring_setup kill tgkill mmap mprotect prctl
	prlimit64 setuid unshare mount bpf keyctl chroot"
eperm=1 enoent=2 esrch=3

# ---- on, which is the default ----

start
grep -q 'info: system calls are filtered: --seccomp=on$' "$server_log"
made getppid
[ "$err" -eq 0 ]
[ "$(denied_calls)" -eq 0 ]
n=0
for call in $calls; do
	made "$call"
	[ "$err" -eq $eperm ] || fail "$call: errno $err instead of EPERM"
	n=$((n + 1))
	wait_line "$server_log" \
		"warning: the system call $call of thread [0-9]+ \(attacker\) is denied, 1 times: "
	[ "$(denied_calls)" -eq $n ] || fail "$(denied_calls) denied calls instead of $n"
done
made socket-alg
[ "$err" -eq $eperm ]
[ "$(denied_calls)" -eq $((n + 1)) ]
# A thread that would block all signals does not end the server.
made blocked
[ "$err" -eq $eperm ]
[ "$(denied_calls)" -eq $((n + 3)) ]
serves
# Nothing of the server's own was denied meanwhile.
must_fail grep -E 'denied' <(grep -v '(attacker)' "$server_log")
# Each thread has the filter, and gets no right by a program.
for status in "/proc/$server_pid/task/"*/status; do
	grep -q -x 'NoNewPrivs:.1' "$status" || fail "without no_new_privs: $(cat "$status")"
	grep -q -x 'Seccomp:.2' "$status" || fail "without filter: $(cat "$status")"
done

# A flood of denied calls is counted, and the lines are few.
before=$(wc -l <"$server_log") first=$(denied_calls)
for _ in {1..500}; do made chroot; done
[ "$(denied_calls)" -eq $((first + 500)) ]
[ $(($(wc -l <"$server_log") - before)) -le 40 ]
serves
stop_server "$server_pid"
sum=$(sed -n 's/.* the system call chroot .* is denied, \([0-9]*\) times: .*/\1/p' "$server_log" |
	awk '{ n += $1 } END { print n }')
[ "$sum" -eq 501 ] || fail "the log tells of $sum calls instead of 501"

# A call by another table of calls is no library's.
if [ "$(uname -m)" = x86_64 ]; then
	start
	echo int80 >&8
	status=0
	wait_until "the end of the server" process_ended "$server_pid"
	wait "$server_pid" || status=$?
	stopped="$stopped$server_pid "
	# SIGSYS; SIGSEGV from a kernel that has no other table.
	[ $status -eq $((128 + 31)) ] || [ $status -eq $((128 + 11)) ] ||
		fail "the server ended with status $status, or answered"
fi

# ---- log ----

start --seccomp=log
grep -q 'info: system calls are filtered: --seccomp=log$' "$server_log"
made ptrace
[ "$err" -eq $esrch ]
made execve
[ "$err" -eq $enoent ]
for call in ptrace execve; do
	wait_line "$server_log" \
		"the system call $call of thread [0-9]+ \(attacker\) would be denied, 1 times"
done
[ "$(denied_calls)" -eq 2 ]
serves
stop_server "$server_pid"
grep -q 'seccomp=log: 2 system calls would have been denied$' "$server_log"

# ---- off ----

start --seccomp=off
grep -q 'info: system calls are not filtered: --seccomp=off$' "$server_log"
made ptrace
[ "$err" -eq $esrch ]
made execve
[ "$err" -eq $enoent ]
[ "$(denied_calls)" -eq 0 ]
must_fail grep ' denied' "$server_log"
grep -q -x 'Seccomp:.0' "/proc/$server_pid/task/$server_pid/status"
grep -q -x 'NoNewPrivs:.1' "/proc/$server_pid/task/$server_pid/status"
stop_server "$server_pid"
SERVER_PREFIX=
expect_failure 2 "seccomp.*expected (off|on|log)" "$RTRS_SERVER" --seccomp=maybe "disk=$tmp/disk"

# ---- capabilities ----

# The sets of all threads of the server are at most MASK.
at_most() {
	local caps
	grep -h -E '^Cap(Eff|Prm|Inh|Amb):' "/proc/$server_pid/task/"*/status | sort -u >"$tmp/caps"
	cat "$tmp/caps"
	while read -r _ caps; do
		[ $((16#$caps & ~$1)) -eq 0 ] || fail "a thread has the capabilities $caps"
	done <"$tmp/caps"
}
if [ "$(id -u)" -eq 0 ]; then
	# DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, NET_BIND_SERVICE, IPC_LOCK, SYS_PTRACE, SYS_NICE
	kept=$((1 << 1 | 1 << 2 | 1 << 3 | 1 << 10 | 1 << 14 | 1 << 19 | 1 << 23))
	start_server "disk=$tmp/disk"
	at_most $kept
	grep -q -v 'Cap.*0000000000000000' "$tmp/caps" || skip "root has no capability here"
	stop_server "$server_pid"
	# Another user: none, and an ambient one is not kept.
	chmod 644 "$tmp/disk"
	chmod 755 "$tmp"
	SERVER_PREFIX="setpriv --reuid=65534 --regid=65534 --clear-groups"
	SERVER_PREFIX+=" --inh-caps=+sys_admin --ambient-caps=+sys_admin"
	$SERVER_PREFIX true || skip "passed but for a server that is not root's: no setpriv"
	start_server --control none "disk=$tmp/disk,readonly"
	at_most 0
	stop_server "$server_pid"
fi
