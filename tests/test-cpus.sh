#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --cpus: the threads that serve run on these CPUs, and the thread for all else where it did.
. ./tests/functions.sh
requires_server

# The CPUs that this process may use, one a line.
mapfile -t cpus < <(/usr/bin/python3 -c \
	'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
all=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
one=${cpus[-1]}

# where PID: the lists of CPUs of the threads that serve, then that of the main thread
where() {
	local task
	for task in /proc/"$1"/task/*; do
		[[ $(cat "$task/comm") != "reactor "* ]] ||
			sed -n 's/^Cpus_allowed_list:\t//p' "$task/status"
	done
	sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/task/$1/status"
}
start_server --threads 2 --cpus "$one" disk=mem:1M
[ "$(where "$server_pid" | tr '\n' ' ')" = "$one $one $all " ]
stop_server "$server_pid"
start_server --threads 2 disk=mem:1M
[ "$(where "$server_pid" | tr '\n' ' ')" = "$all $all $all " ]

expect_failure 1 "--cpus '$one,1023': expected CPUs that this process may use: $all$" \
	"$RTRS_SERVER" --cpus "$one,1023" disk=mem:1M
for list in '' ',' x 1- 1-0 0,,1 0- -1 0,1x 1024; do
	expect_failure 2 "--cpus '$list': expected a list of CPUs like 0,2-3$" \
		"$RTRS_SERVER" --cpus="$list" disk=mem:1M
done
