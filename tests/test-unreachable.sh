#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit does not start when there is no server, when its host does not exist, and when what listens
# there is no rtrs-server: one line that names the server and what to look for, in bounded time.
. ./tests/functions.sh
requires_plugin
requires /usr/bin/python3 --version
requires curl --version

# expect_everywhere SERVER REGEX: the plugin and rtrs-bench say the same of SERVER.
expect_everywhere() {
	expect_nbdkit_failure "$1.*$2" "server=${1//\\/}" export=disk
	expect_failure 1 "${1#unix:}.*$2" "$top_builddir/rtrs-bench" "${1//\\/}" disk
}

# A port that was free a moment ago: bound, never listened on.
cat >"$tmp/bound.py" <<'END'
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
sys.stdin.read()
END
coproc bound { /usr/bin/python3 "$tmp/bound.py"; }
read -r port <&"${bound[0]}"
expect_everywhere "127\.0\.0\.1:$port" \
	"Connection refused \(no rtrs-server listens there, or a firewall rejects it; port 1234 "
expect_nbdkit_failure 'nonexistent\.invalid' server=nonexistent.invalid export=disk

# A unix socket that is not there, that nobody listens at, and where nbdkit itself listens.
expect_everywhere "unix:$tmp/none" \
	"No such file or directory \(is rtrs-server running with --listen unix:PATH\?\)"
/usr/bin/python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$tmp/left"
expect_everywhere "unix:$tmp/left" \
	"Connection refused \(is rtrs-server running\? no process listens at this socket\)"
# What is no socket at all, and a port that is none.
touch "$tmp/file"
for path in "$tmp/file" "$tmp"; do
	expect_everywhere "unix:$path" \
		"Socket operation on non-socket \(this path is not a socket\)"
done
expect_nbdkit_failure "127\.0\.0\.1:0: the port must be a number from 1 to 65535" \
	server=127.0.0.1:0 export=disk
expect_nbdkit_failure "127\.0\.0\.1:0: the port must" server=127.0.0.1 path=127.0.0.2@127.0.0.1:0 \
	export=disk
expect_failure 2 "127\.0\.0\.1:0: the port must be a number from 1 to 65535" \
	"$top_builddir/rtrs-bench" 127.0.0.1:0 disk
# A source that this machine has not.
expect_nbdkit_failure \
	"Cannot assign requested address \(no interface of this machine has the address in front of '@'\)" \
	"path=192.0.2.77@127.0.0.1:$port" export=disk
nbdkit -U "$tmp/nbd" -P "$tmp/nbd.pid" memory 1M
wait_until "nbdkit" test -s "$tmp/nbd.pid"
cleanup_fn stop_daemon "$(cat "$tmp/nbd.pid")"
expect_everywhere "unix:$tmp/nbd" \
	"the peer is an NBD server, not an rtrs-server: write the address of rtrs-server, or use nbdkit's nbd plugin"
# A control socket.
preload=$(nbdkit_preload)
env ${preload:+LD_PRELOAD=$preload} nbdkit -U "$tmp/away" -P "$tmp/away.pid" \
	"$RTRS_PLUGIN" "server=unix:$tmp/none" \
	connect-timeout=forever "control=$tmp/control"
wait_until "nbdkit" test -s "$tmp/away.pid"
cleanup_fn stop_daemon "$(cat "$tmp/away.pid")"
expect_everywhere "unix:$tmp/control" \
	"the peer is a control socket, for rtrsctl: write the address of rtrs-server"

# What answers is not ours.
cat >"$tmp/stranger.py" <<'END'
import socket, sys
how = sys.argv[1]
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
held = []
while True:
    c, _ = s.accept()
    if how == "garbage":
        c.sendall(bytes(range(256)) * 16)
        held.append(c)
    elif how == "http":
        c.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        c.close()
    elif how == "ssh":
        c.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        held.append(c)
    elif how == "close":
        c.close()
    elif how == "silent":
        held.append(c)
    elif how == "echo":
        c.settimeout(5)
        try:
            c.sendall(c.recv(4096))
        except OSError:
            pass
        held.append(c)
END
declare -A says=(
	[garbage]="the peer does not speak RTRS \(its first bytes are 00 01 02 03 04 05 06 07\)"
	[http]="the peer does not speak RTRS \(it said 'HTTP/1.1 400 Bad Request'\)"
	[ssh]="the peer does not speak RTRS \(it said 'SSH-2.0-OpenSSH_9.2p1'\)"
	[close]="the peer closed the connection without an answer: no rtrs-server"
	[silent]="the peer accepted the connection and said nothing for 10 s: no rtrs-server"
	[echo]="a frame that is no answer"
)
for how in "${!says[@]}"; do
	/usr/bin/python3 "$tmp/stranger.py" "$how" >"$tmp/port" &
	stranger=$!
	cleanup_fn kill_process $stranger
	wait_until "a port" test -s "$tmp/port"
	port=$(cat "$tmp/port")
	expect_nbdkit_failure "127\.0\.0\.1:$port.*${says[$how]}" "server=127.0.0.1:$port" \
		export=disk
	rm "$tmp/port"
done
[ ! -e "$tmp/failure.sock" ]

# A server at its limit is waited for like one that is away.
truncate -s 1M "$tmp/disk"
start_server --max-sessions 1 --metrics "unix:$tmp/metrics" "disk=$tmp/disk"
there="server=127.0.0.1:$server_port"
start_nbdkit "$there" transport=tcp export=disk
holder=$nbdkit_pid
full='the server has as many sessions as it allows \(its --max-sessions\)'
expect_nbdkit_failure "$full" "$there" transport=tcp export=disk
start_nbdkit "$there" transport=tcp export=disk connect-timeout=forever
grep -q -E "$full; starting without" "$nbdkit_log"
first=$nbdkit_pid first_uri=$uri
stop_process "$holder"
nbdsh_run "$first_uri" <<<'assert h.pread(512, 0) == bytes(512)'
# nrefused: the log has a line a minute for a client that comes again.
nrefused() {
	curl --silent --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics" \
		http://localhost/metrics |
		awk '/^rtrs_server_refused_total[{]/ { n += $2 } END { print n + 0 }'
}
refused_again() { [ "$(nrefused)" -gt "$refused" ]; }
refused=$(nrefused)
(
	wait_until "a refusal" refused_again
	kill -TERM "$first"
) &
start_nbdkit -v -- "$there" transport=tcp export=disk "connect-timeout=$((4 * TIMEOUT_S))"
expect_exit "$first" 0
nbdsh_run "$uri" <<<'assert h.pread(512, 0) == bytes(512)'
