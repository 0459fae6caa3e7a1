#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A socket in the file system instead of a port: IO, whose it is, what a dead server leaves, a
# server that is killed under load and started again, a second path over it.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd
requires nbdcopy --version
requires python3 -c 'import socket'

at=unix:$tmp/a.sock
serve() {
	start_server --listen "$at" --control none "$@"
}

# ---- IO, names, and the end ----

random_file "$tmp/disk" $((8 << 20))
start_server --listen "$at" --control "$tmp/server.control" "disk=$tmp/disk"
grep -q -x -F "listening on $at" "$server_log"
[ "$(stat -c %F "$tmp/a.sock")" = socket ]
start_nbdkit "server=$at" export=disk control=none
cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
# Both ends know it by the same name.
grep -q -F "unix:pid=$nbdkit_pid,uid=$(id -u)@$at: path up" "$server_log"
grep -q -F "disk' of $at" <(timeout "$TIMEOUT_S" nbdinfo "$uri")
stop_process "$nbdkit_pid"
# What carries it is a unix socket to them.
start_nbdkit "server=$at" export=disk control="$tmp/control"
wait_until "the control socket" test -S "$tmp/control"
for control in "$tmp/control" "$tmp/server.control"; do
	"$top_builddir/rtrsctl" --socket "$control" show | grep -x -E ' +transport +unix'
	must_fail grep -E ' tcp ' <("$top_builddir/rtrsctl" --socket "$control" status)
done
stop_process "$nbdkit_pid"

# ---- who has the name ----

truncate -s 1M "$tmp/another"
expect_failure 1 "cannot listen on $at:.*another program listens" \
	"$RTRS_SERVER" --listen "$at" --control none "disk=$tmp/another"
[ -S "$tmp/a.sock" ]
stop_process "$server_pid"
[ ! -e "$tmp/a.sock" ] || fail "the socket outlives its server"
# A server that has no socket yet is away.
start_nbdkit "server=$at" export=disk control=none connect-timeout=forever
wait_line "$nbdkit_log" "server=$at: No such file or directory .*; starting without"
serve "disk=$tmp/disk"
cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
stop_process "$nbdkit_pid"
# So is one where another session has the name of the session that asks at the start.
start_nbdkit "server=$at" export=disk control=none sessname=vm-probe
first=$nbdkit_pid
start_nbdkit "server=$at" export=disk control=none sessname=vm connect-timeout=forever
grep -E "server=$at: .* refused session 'vm-probe': another client .*; starting without" \
	"$nbdkit_log"
cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
stop_process "$nbdkit_pid"
stop_process "$first"
stop_process "$server_pid"
echo x >"$tmp/a.sock"
expect_failure 1 "cannot listen on $at:.*is not a socket" "$RTRS_SERVER" --listen "$at" \
	--control none "disk=$tmp/disk"
[ "$(cat "$tmp/a.sock")" = x ]
rm "$tmp/a.sock"
expect_failure 2 "absolute path" "$RTRS_SERVER" --listen unix:a.sock "disk=$tmp/disk"

# ---- who may connect: the umask, and --allow ----

mask=$(umask)
umask 077
serve --allow "uid:$(id -u)" --allow 192.0.2.1 "disk=$tmp/disk"
umask "$mask"
[ "$(stat -c %a "$tmp/a.sock")" = 700 ]
start_nbdkit "server=$at" export=disk control=none
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
stop_process "$nbdkit_pid"
stop_process "$server_pid"
serve --allow "uid:$(($(id -u) + 1))" "disk=$tmp/disk"
# A name that a client gives to its own end is nobody's.
python3 - "$tmp/a.sock" "$tmp/own name" >"$tmp/own.pid" <<'END'
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[2])
s.connect(sys.argv[1])
print(os.getpid(), flush=True)
while s.recv(4096):		# the refusal, and the end
    pass
END
# Said before it is refused.
grep -F "unix:pid=$(cat "$tmp/own.pid"),uid=$(id -u): connection refused: this user is in no --allow rule" "$server_log"
if grep -F "own name" "$server_log"; then fail "a client is logged by a name of its own"; fi
# As in test-allow.sh: it hears it whichever comes first, the refusal or its own request.
for _ in {1..20}; do
	expect_nbdkit_failure \
		"$at.*refused: .*\(does its --allow contain this user\?" "server=$at" export=disk \
		control=none
done
wait_line "$server_log" \
	"unix:pid=[0-9]+,uid=$(id -u): connection refused: this user is in no --allow rule"
stop_process "$server_pid"

# ---- killed under load, twice; the socket that is left is taken over ----

truncate -s 32M "$tmp/disk2"
start_server --listen "$at" --listen tcp://127.0.0.1:0 --control none "disk=$tmp/disk2"
start_nbdkit "server=$at" export=disk "io-timeout=$TIMEOUT_S" control="$tmp/control"
cd "$tmp" || exit
timeout $((4 * TIMEOUT_S)) fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite --bs=4k \
	--size=32M \
	--iodepth=16 --verify=crc32c --verify_state_save=0 --verify_fatal=1 --verify_dump=0 \
	--verify_backlog=256 \
	--time_based --runtime=6 --randrepeat=0 --eta=never >"$tmp/fio.log" 2>&1 &
fio=$!
for turn in 1 2; do
	wait_for_writes "writes before kill $turn" "$tmp/disk2"
	kill_process "$server_pid"
	[ -S "$tmp/a.sock" ]
	start_server --listen "$at" --listen tcp://127.0.0.1:0 --control none "disk=$tmp/disk2"
done
wait_for_writes "writes after the last restart" "$tmp/disk2"

# ---- beside a path over tcp ----

ctl() { timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control" "$@"; }
path_up() {
	ctl --json show | with_json "
paths = a['sessions'][0]['paths']
sys.exit({p['name']: p['state'] for p in paths}.get('$1') != 'connected')"
}
ctl path add "127.0.0.1:$server_port"
wait_until "the path over tcp" path_up "127.0.0.1:$server_port"
ctl path remove "$at"
expect_exit $fio 0
grep -q 'err= 0' "$tmp/fio.log"
ctl path add "$at"
wait_until "the path to the socket" path_up "$at"

# ---- with both from the start: the transport of the second is still to be chosen ----

# Where an RDMA device reaches the server it may be rdma.  The path to the socket, which is up, says
# nothing of that.
stop_process "$nbdkit_pid"
start_nbdkit "server=$at" "path=127.0.0.1:$server_port" export=disk control="$tmp/control"
wait_until "the path whose transport was chosen" path_up "127.0.0.1:$server_port"
wait_until "the path whose transport was named" path_up "$at"

# ---- names that are no UTF-8, in answers as JSON ----

odd=$'\xff\e\xc3\xa4' shown=$'\?\?\xc3\xa4'
cp "$tmp/disk" "$tmp/disk$odd"
start_server --listen "unix:$tmp/b$odd" --control "$tmp/server$odd" "disk$odd=$tmp/disk$odd"
start_nbdkit "server=unix:$tmp/b$odd" "export=disk$odd" "sessname=s$odd" "control=$tmp/client$odd"
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
for control in server client; do
	for command in list show stats status; do
		for how in '' --json; do
			# shellcheck disable=SC2086 # a word or none
			"$top_builddir/rtrsctl" $how --socket "$tmp/$control$odd" $command \
				>"$tmp/answer"
			cat -v "$tmp/answer"
			must_fail grep -a -F $'\e' "$tmp/answer"
			/usr/bin/python3 \
				-c 'open(__import__("sys").argv[1], encoding="utf-8").read()' \
				"$tmp/answer"
			[ -z "$how" ] || /usr/bin/python3 -m json.tool "$tmp/answer" >"$tmp/json"
		done
	done
	"$top_builddir/rtrsctl" --json --socket "$tmp/$control$odd" show >"$tmp/answer"
	grep -q -F "s$shown" "$tmp/answer"
done
# The name of a path that is shown is the one that it is called by.
name=$(/usr/bin/python3 \
	-c 'import json, sys; print(json.load(open(sys.argv[1]))["sessions"][0]["paths"][0]["name"])' \
	"$tmp/answer")
"$top_builddir/rtrsctl" --socket "$tmp/client$odd" path reconnect "$name"
expect_failure 1 "is not UTF-8" "$top_builddir/rtrsctl" \
	--socket "$tmp/client$odd" path add "unix:$tmp/b$odd"
if [ -x "$top_builddir/rtrs-bench" ]; then
	"$top_builddir/rtrs-bench" --json --number-ios=10 "unix:$tmp/b$odd" "disk$odd" \
		>"$tmp/answer"
	/usr/bin/python3 -m json.tool "$tmp/answer"
fi
