# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Comings and goings, for test-paths-leak.sh and, a thousand of them, test-paths-slow.sh; after
# wires.sh.
#
# What is left behind shows in descriptors, in memory, and, because the server has no more than four
# permits for a client and windows are as many, in a load that cannot go on at the end.

# descriptors PID
descriptors() {
	find "/proc/$1/fd" -type l | wc -l
}

descriptors_are() {
	[ "$(descriptors "$1")" -eq "$2" ]
}

# memory PID: resident, in KiB, without what is shared with files.
memory() {
	awk '/^RssAnon:/ { print $2 }' "/proc/$1/status"
}

# all_gone: the server has no connection any more.  (Its log tells no more than so many lines of one
# host.)
all_gone() {
	[ -z "$(in_server ss -H -t -n state established)" ]
}

# What is allowed to grow: pages that the allocator keeps for threads that come and go.
GROWTH_KIB=1024

# leaves_nothing WHAT PID N COMMAND: N times COMMAND, which gets the number; after a tenth of them
# the process PID has what it needs.
leaves_nothing() {
	local what=$1 pid=$2 n=$3 i fds rss

	shift 3
	{ local -; set +x; } 2>/dev/null
	echo "== $n times: $what"
	for ((i = 1; i <= n; i++)); do
		"$@" $i
		if [ $i -eq $(((n + 9) / 10)) ]; then
			fds=$(descriptors "$pid") rss=$(memory "$pid")
		fi
	done
	wait_until "as many descriptors as before" descriptors_are "$pid" "$fds"
	echo "$what: $fds descriptors, $rss KiB, $(memory "$pid") KiB in the end"
	[ "$(memory "$pid")" -le $((rss + GROWTH_KIB)) ] || fail "memory of $what"
}

# One of them asks for more at once than there are permits.
nbd_client() {
	nbdsh -u "$uri" -c - <<'END'
jobs = [h.aio_pread(nbd.Buffer(4096), 4096 * i) for i in range(16)]
while jobs := [job for job in jobs if not h.aio_command_completed(job)]:
    h.poll(-1)
END
	wait_until "the end of the client" descriptors_are "$nbdkit_pid" "$alone"
}

# forget PID: it has ended, and among so many its number comes again.
forget() {
	local i

	for i in "${!cleanups[@]}"; do
		case ${cleanups[$i]} in
		"stop_server $1 " | "stop_process $1 ") unset "cleanups[$i]" ;;
		esac
	done
	cleanups=("${cleanups[@]}")
	has_started "$1"
}

session() {
	connect export=disk
	stop_process "$nbdkit_pid"
	forget "$nbdkit_pid"
	wait_until "the end of the session" all_gone
}

come_back() {
	kill_process "$server_pid"
	forget "$server_pid"
	serve --queue-depth=4 "disk=$tmp/disk"
	wait_until "both paths" paths_up 2
}

# leaks CLIENTS SESSIONS COME-BACKS
leaks() {
	local alone

	serve --queue-depth=4 "disk=$tmp/disk"
	leaves_nothing "the server's sessions" "$server_pid" "$2" session
	connect export=disk registration=window
	alone=$(descriptors "$nbdkit_pid")
	leaves_nothing "the gateway's clients" "$nbdkit_pid" "$1" nbd_client
	leaves_nothing "the gateway's connections" "$nbdkit_pid" "$3" come_back
	load_begin
	carries 1
	carries 2
	load_end 1000000
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
}
