# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of rtrs-attach in a guest: what happens to a device with two paths while it has load.
# The load goes on after each event.  Sourced behind attach.sh.

# Two addresses of this host are two paths.  A path is cut when its address goes: nobody is told.
two_paths() {
	local address

	listen_at=0.0.0.0 host=10.9.0.1 other=10.9.1.1
	for address in $host $other; do
		ip addr add "$address"/32 dev lo
	done
	cleanup_fn no_paths
	begin_server
	keys+=(path="$other:$server_port")
}

# One may be pulled.
no_paths() {
	pull "$host" 2>/dev/null || true
	pull "$other" 2>/dev/null || true
}

paths_up() {
	{ "$top_builddir/rtrsctl" --pid "$(attached_pid)" check || true; } |
		grep -q " paths_up=$1\$"
}

# kill_processes TIMES
kill_processes() {
	local i

	for ((i = 1; i <= $1; i++)); do
		kill_attached
		attach
		loads_go_on "death $i of the process"
	done
}

# kill_servers TIMES HOW: kill_process kills at any moment, also in a sync: then the next server
# reports that writes may be lost.  kill_between_syncs avoids that.
kill_servers() {
	local i

	for ((i = 1; i <= $1; i++)); do
		$2 "$server_pid"
		restart_server
		loads_go_on "death $i of the server"
	done
}

# Of the server that stands still: the third number of a state file (src/store/export-state.h).
no_sync() {
	local file

	for file in "$RUNTIME_DIRECTORY"/*.state; do
		[ "$(od -An -t u8 -j 16 -N 8 "$file" | tr -d ' ')" = 0 ] || return 1
	done
}

kill_between_syncs() {
	until stop_all_threads "$1" && no_sync; do
		kill -CONT "$1"
	done
	kill_process "$1"
}

# pull ADDRESS; plug ADDRESS
pull() {
	ip addr del "$1"/32 dev lo
}

plug() {
	ip addr add "$1"/32 dev lo
}

# comes_back ADDRESS: a path that was lost twice while requests waited is left alone for a minute
# and more (nbdkit-rtrs-plugin(1)), unless an administrator asks for it.
comes_back() {
	paths_up 2 && return
	"$top_builddir/rtrsctl" --pid "$(attached_pid)" path reconnect "$1:$server_port" || true
	return 1
}

# pull_paths TIMES: each of the two; then both at once.
pull_paths() {
	local i address

	for address in $host $other; do
		wait_until "$address" comes_back "$address"
	done
	for ((i = 1; i <= $1; i++)); do
		for address in $host $other; do
			pull "$address"
			wait_until "the loss of $address" paths_up 1
			loads_go_on "loss $i of $address"
			plug "$address"
			wait_until "$address" comes_back "$address"
		done
	done
	pull "$host"
	pull "$other"
	wait_until "the loss of both paths" paths_up 0
	plug "$host"
	plug "$other"
	loads_go_on "the loss of both paths"
}

# freeze_each TIMES: the process; and the server, until the process has given it up.
freeze_each() {
	local i pid

	for ((i = 1; i <= $1; i++)); do
		pid=$(attached_pid)
		stop_all_threads "$pid"
		kill -CONT "$pid"
		loads_go_on "frost $i of the process"
		stop_all_threads "$server_pid"
		wait_until "the loss of the frozen server" paths_up 0
		kill -CONT "$server_pid"
		loads_go_on "frost $i of the server"
	done
}

# kill_both HOW: process and server, at once; HOW is of kill_servers.
kill_both() {
	$1 "$server_pid"
	kill_attached
	attach_waits
	restart_server
	wait "$attacher" || fail "no process has taken the device over"
	loads_go_on "the death of both"
}
