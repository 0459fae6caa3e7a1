#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# That a path was lost and has come back is seen without -v, and is no error: on stderr, and in the
# system log where nbdkit is a daemon.
. "$(dirname "$0")/own-namespace.sh" --mount
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
port=$server_port
# come_back LOG: another server on the same port.
come_back() {
	stop_process "$server_pid"
	wait_line "$1" 'rtrs: path .*lost: '
	start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
	wait_line "$1" 'rtrs: path .*connected again after '
	must_fail grep -E 'error: .*(lost|connected again)' "$1"
}

start_nbdkit "server=127.0.0.1:$port" export=disk
# A path that is up is lost.
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
come_back "$nbdkit_log"
timeout "$TIMEOUT_S" nbdinfo --size "$uri"

[ "$IN_NAMESPACE" = yes ] || skip "no mount namespace: the system log was not tried"
requires_plain_build

# A /dev of its own, with a system log.
mkdir "$tmp/dev"
mount --rbind /dev "$tmp/dev" && mount -t tmpfs none /dev ||
	skip "cannot mount over /dev: the system log was not tried"
cleanup_fn umount --lazy "$tmp/dev"
cleanup_fn umount --lazy /dev
ln -s "$tmp"/dev/* /dev/
rm -f /dev/log
cat >"$tmp/syslogd.py" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("/dev/log")
print("ready", flush=True)
while True:
    print(s.recv(65536).decode(errors="replace"), flush=True)
END
/usr/bin/python3 "$tmp/syslogd.py" >"$tmp/syslog.log" 2>&1 &
cleanup_fn kill_process $!
wait_line "$tmp/syslog.log" ready

nbdkit -U "$tmp/daemon.sock" -P "$tmp/daemon.pid" \
	"$RTRS_PLUGIN" "server=127.0.0.1:$port" export=disk \
	</dev/null >"$tmp/daemon.log" 2>&1
wait_until "the daemon" test -s "$tmp/daemon.pid"
daemon=$(cat "$tmp/daemon.pid")
cleanup_fn stop_daemon "$daemon"
timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$tmp/daemon.sock"
come_back "$tmp/syslog.log"
[ ! -s "$tmp/daemon.log" ]
