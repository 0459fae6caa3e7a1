# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Faults under load, for test-paths.sh and, for as long as it takes, test-paths-slow.sh; after
# wires.sh.
#
# Loads sync now and then (--fsync), but not where the server is killed: a server that is killed in
# the middle of a sync costs a client with unflushed writes one FLUSH, on purpose (doc/decisions.md
# D13).

# begin_fault NAME [FIO-OPTION...]: server, client and load.
begin_fault() {
	echo "== $1"
	serve "disk=$tmp/disk"
	connect export=disk
	load_begin "${@:2}"
	carries 1
	carries 2
}

# end_fault MS: everything goes on; see load_end.
end_fault() {
	carries 1
	carries 2
	load_end "$1"
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
}

# Each of the two, so that one of them is the first path of the session.
one_cut() {
	local n

	begin_fault "a cable is cut" --fsync=64
	for n in 1 2; do
		pull $n
		wait_line "$nbdkit_log" "path .*10\.77\.$n\.2:1234: lost: .*no sign of life"
		carries $((3 - n))
		plug $n
		wait_line "$nbdkit_log" "path .*10\.77\.$n\.2:1234: connected again"
		carries $n
	done
	end_fault $((DETECT_MS + SLACK_MS))
}

# flapping SECONDS: cut and restored once a second, for a little longer than it takes to find out.
flapping() {
	local i

	begin_fault "a cable is cut and restored for $1 s" --fsync=64
	for ((i = 0; i < $1; i++)); do
		pull 1
		pause 0.5
		plug 1
		pause 0.5
	done
	end_fault $((DETECT_MS + SLACK_MS))
}

# swapped SECONDS: our interface of a cable was down, and is up, but nobody has tried it again, when
# the other cable is cut.  Attempts fail at once meanwhile, and so they have become rare.
swapped() {
	begin_fault "an interface is down for $1 s, and then the other cable is cut" --fsync=64
	in_client ip link set net1 down
	pause "$1"
	in_client ip link set net1 up
	pull 2
	carries 1
	plug 2
	end_fault $((DETECT_MS + SLACK_MS))
}

# both_cut SECONDS
both_cut() {
	begin_fault "both cables are cut for $1 s" --fsync=64
	pull 1
	pull 2
	pause "$1"
	plug 1
	plug 2
	end_fault $(($1 * 1000 + DETECT_MS + SLACK_MS))
}

# restarts TIMES COMMAND: of the server, which COMMAND ends.  How long that takes is not the
# client's.
restarts() {
	local i killed_us away_ms longest_ms=0

	for ((i = 0; i < $1; i++)); do
		killed_us=${EPOCHREALTIME/./}
		"$2" "$server_pid"
		serve "disk=$tmp/disk"
		away_ms=$(((${EPOCHREALTIME/./} - killed_us) / 1000))
		[ $away_ms -le $longest_ms ] || longest_ms=$away_ms
		carries 1
		carries 2
	done
	echo "the server was away for $longest_ms ms at most"
	end_fault $((longest_ms + DETECT_MS + SLACK_MS))
}

# server_killed TIMES
server_killed() {
	begin_fault "the server is killed $1 times"
	restarts "$1" kill_process
}

# server_restarted TIMES: it ends in good order.
server_restarted() {
	begin_fault "the server is restarted $1 times" --fsync=64
	restarts "$1" stop_process
}

# server_frozen SECONDS: longer than it takes to find out; it goes on with what it had read before.
server_frozen() {
	begin_fault "the server is frozen for $1 s" --fsync=64
	stop_all_threads "$server_pid"
	pause "$1"
	kill -CONT "$server_pid"
	end_fault $(($1 * 1000 + DETECT_MS + SLACK_MS))
}
