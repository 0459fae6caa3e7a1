# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A server with two addresses, and a client of it by either front, whose files are read again under IO
# that must not fail; sourced after functions.sh.
. "$top_srcdir/tests/pki.sh"
. "$top_srcdir/tests/reload.sh"
requires_server; requires_plugin; requires_gateway

rtrsctl=$top_builddir/rtrsctl
truncate -s 64M "$tmp/disk"

server_reload() {
	"$rtrsctl" --socket "$tmp/server.ctl" reload
}
all_up() {
	# A file of keys with a mistake is a warning.
	{ "${ctl[@]}" check || true; } | grep -q ', 2 of 2 paths up'
}
# path_again N: path N of the client is lost and comes back
path_again() {
	local name ups
	name=$("${ctl[@]}" list | sed -n 's/^ *path //p' | sed -n "${1}p")
	ups=$(reconnects "$name")
	"${ctl[@]}" path reconnect "$name"
	wait_until "path $name again" came_back "$name" "$ups"
	wait_until "all paths" all_up
}
reconnects() {
	"${ctl[@]}" --json stats | with_json '
[s] = a["sessions"]
print(*[p["reconnects"] for p in s["paths"] if p["name"] == sys.argv[1]])' "$1"
}
came_back() {
	[ "$(reconnects "$1")" -gt "$2" ]
}

# client FRONT KEY=VALUE...: the plugin or rtrs-nbd with two paths; ctl asks it
client() {
	local front=$1
	shift
	"start_$front" "server=$first" "path=$second" export=disk control="$tmp/client.ctl" "$@"
	case $front in
	nbdkit) client_pid=$nbdkit_pid ;;
	gateway) client_pid=$gateway_pid ;;
	esac
	wait_until "all paths" all_up
}
# server OPTION...: with two addresses; the ones of before, if there are
server() {
	start_server --listen "tcp://${first-127.0.0.1:0}" --listen "tcp://${second-127.0.0.2:0}" \
		--control "$tmp/server.ctl" --log-level=debug "$@" "disk=$tmp/disk"
	first=127.0.0.1:$server_port
	second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
}
