#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Stops processes, and ends when none of their threads runs any more.  kill(2) returns before: a
# thread that runs on another CPU, or waits in the kernel, goes on until it looks for signals.
#
#	stop-threads.sh SECONDS PID...
#
# When that takes longer than SECONDS, it says which thread does not stop, and fails.  Tests in the
# shell call stop_all_threads() of functions.sh, and tests in Python run this.
set -u
deadline=$((SECONDS + $1))
shift

# stands_still PID: a thread is stopped, and each other one, too, or it has ended meanwhile.
stands_still() {
	local file line stopped=no

	for file in "/proc/$1/task/"*/stat; do
		# The name in front may have any byte, parentheses and newlines among them.
		line=''
		{ read -r -d '' line <"$file"; } 2>/dev/null
		case ${line##*) } in
		[Tt]*) stopped=yes ;;
		[XZ]* | '') ;;
		*) runs=$line; return 1 ;;
		esac
	done
	[ $stopped = yes ]
}

kill -STOP "$@" || exit
for pid; do
	runs="no thread of process $pid is left"
	# Twice: the first look may miss a thread that was made meanwhile.  Once a thread is
	# stopped no other one can make one.
	until stands_still "$pid" && stands_still "$pid"; do
		if [ $SECONDS -ge $deadline ]; then
			echo "$0: process $pid does not stop: $runs"
			exit 1
		fi
		sleep 0.02
	done
done
