#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a guest of a rack: starts what rack.sh puts into /run/guest/jobs, each as soon as it is there,
# until /run/guest/end appears.  A job ID.sh leaves ID.pid, ID.out and, when it has ended,
# ID.status.
jobs=/run/guest/jobs
echo 60 >/proc/sys/kernel/hung_task_timeout_secs 2>/dev/null
# Nothing is ever written there: read is a pause that needs no process.
mkfifo /tmp/agent.pause
exec 9<>/tmp/agent.pause
touch /run/guest/up
while [ ! -e /run/guest/end ]; do
	for job in "$jobs"/*.sh; do
		[ -e "$job" ] || continue
		id=${job%.sh}
		mv "$job" "$id.job"
		(
			setsid bash "$id.job" "$id" </dev/null >"$id.out" 2>&1 9>&- &
			wait $!
			echo $? >"$id.tmp"
			mv "$id.tmp" "$id.status"
		) &
	done
	read -r -t 0.1 <&9
done
