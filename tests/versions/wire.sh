#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A gateway of one version and a server of the other one, in the clear: each operation of NBD, and
# then a load that verifies while a path is lost, the server is killed and started again, and the
# server of the other version takes its place and gives it back; a disk that has grown is seen by
# the next NBD connection. With rtrs-nbd and with nbdkit, over tcp and unix sockets.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_plugin; requires_gateway
requires nbdsh --version
case $(stat -f -c %T "$tmp") in
ext2/ext3 | xfs | btrfs | tmpfs) ;;
*) skip "needs a file system whose holes rtrs-server knows at $tmp" ;;
esac

# serve VERSION: at the same two places each time.
serve() {
	use "$1"
	start_server --listen "${places[0]}" --listen "${places[1]}" "disk=$tmp/disk"
	cp "$server_log" "$tmp/started"
}

# loses_a_path VERSION: the server of VERSION ends the first path of its only session, under the
# load.
loses_a_path() {
	local back path

	use "$1"
	back=$(came_back)
	path=$("$rtrsctl" --server --json show | /usr/bin/python3 -c \
		'import json, sys; print(json.load(sys.stdin)["sessions"][0]["paths"][0]["name"])')
	"$rtrsctl" --server path disconnect "$path"
	wait_until "the path that was lost" came_back_above "$back"
	load_goes_on
}

came_back() { grep -c 'connected again' "$front_log" || true; }
came_back_above() { [ "$(came_back)" -gt "$1" ]; }

# taken_by VERSION: the server is killed under the load, and this one starts at its place.
taken_by() {
	kill_process "$server_pid"
	serve "$1"
	load_goes_on
}

grown() {
	nbdsh_run "$uri" <<<'assert h.get_size() == 96 << 20, h.get_size()'
}

# pair SERVER GATEWAY FRONT
pair() {
	local server=$1 gateway=$2 front=$3

	rm -f "$tmp/disk"
	truncate -s 64M "$tmp/disk"
	serve "$server"
	use "$gateway"
	start_front "$front" "server=$(where 0)" "path=$(where 1)" export=disk \
		"io-timeout=$TIMEOUT_S"
	export uri
	nbdsh_run "$uri" <"$top_srcdir/tests/versions/io.py"

	load_starts "$uri"
	loses_a_path "$server"
	taken_by "$server"
	taken_by "$gateway"
	taken_by "$server"
	load_ends

	truncate -s 96M "$tmp/disk"
	"$rtrsctl" --server export resize disk
	grown
	stop_process "$front_pid"
	stop_process "$server_pid"
}

# where N: the place N as a gateway writes it.
where() { echo "${places[$1]#tcp://}"; }

for transport in tcp unix; do
	for server in before now; do
		for front in nbdkit rtrs-nbd; do
			case $transport in
			tcp)
				# Ports that the first server finds free.
				use "$server"
				start_server --listen tcp://127.0.0.1:0 \
					--listen tcp://127.0.0.2:0 disk=mem:1M
				mapfile -t places < <(grep -o -E 'tcp://127\.0\.0\.[12]:[0-9]+' \
					"$server_log" | sort -u)
				stop_process "$server_pid"
				;;
			unix) places=("unix:$tmp/a.sock" "unix:$tmp/b.sock") ;;
			esac
			[ ${#places[@]} -eq 2 ]
			pair "$server" "$(other "$server")" "$front"
			echo "passed: server $server, $front $(other "$server"), $transport"
		done
	done
done
