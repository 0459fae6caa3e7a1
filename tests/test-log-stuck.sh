#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A log that nobody reads holds up no program: stderr is a pipe that is full, or the system log or
# the journal does not read.  Clients come and go, commands are answered, heartbeats and paths go
# on, signals end the program.  How many lines are lost: tests/thread/thread-log-queue.c.
. "$(dirname "$0")/own-namespace.sh" --mount
. ./tests/functions.sh
requires_server; requires_gateway; requires_plugin
requires_plain_build
requires nbdinfo --version
requires nbdsh --version
requires /usr/bin/python3 --version

truncate -s 16M "$tmp/disk"

# new_pipe NAME: a pipe of one page for stderr, at $pipe, open as descriptor 7, and a prefix for the
# program in $mute.
new_pipe() {
	pipe=$tmp/$1.pipe mute="sh $tmp/mute.sh $tmp/$1.pipe"
	mkfifo "$pipe"
	exec 7<>"$pipe"
	/usr/bin/python3 -c 'import fcntl; fcntl.fcntl(7, 1031, 4096)'	# F_SETPIPE_SZ
}
cat >"$tmp/mute.sh" <<'SH'
pipe=$1
shift
exec "$@" 2>"$pipe" 7<&-
SH
fill_pipe() {
	dd if=/dev/zero of=/dev/fd/7 oflag=nonblock bs=4096 2>/dev/null || true
	dd if=/dev/zero of=/dev/fd/7 oflag=nonblock bs=1 2>/dev/null || true
}
# new_socket PATH: nobody reads there, and its queue is full.
new_socket() {
	/usr/bin/python3 "$tmp/deaf.py" "$1" >"$tmp/deaf.out" &
	cleanup_fn kill_process $!
	wait_line "$tmp/deaf.out" full
}
cat >"$tmp/deaf.py" <<'PY'
import signal, socket, sys

deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
deaf.bind(sys.argv[1])
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setblocking(False)
s.connect(sys.argv[1])
try:
    while True:
        s.send(b"<13>x")
except BlockingIOError:
    print("full", flush=True)
signal.pause()
PY

call() {
	timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/$1.ctl" "${@:2}"
}
# come_and_go [N]: clients of the gateway, each of which opens the export again.
come_and_go() {
	local i
	for ((i = 0; i < ${1-3}; i++)); do
		timeout "$TIMEOUT_S" nbdinfo --size "$uri" >/dev/null || return
	done
}
up() { [[ $(call "$1" --json status) == *'"state":"connected"'* ]]; }
down() { must_fail up "$1"; }
listen=(--listen "unix:$tmp/rtrs.sock" --control "$tmp/server.ctl" "disk=$tmp/disk")
client=("server=unix:$tmp/rtrs.sock" export=disk heartbeat=500)

# server_works: the server does, whose log nobody reads, through a gateway whose log is read.
server_works() {
	call server status
	call server log-level debug
	come_and_go 20
	call server log-level info
	up gate
	stop_process "$gateway_pid"
	stop_process "$server_pid"
}
# gateway_works NAME: a client whose log nobody reads loses its server and finds another one.
gateway_works() {
	come_and_go
	up "$1"
	stop_process "$server_pid"
	wait_until "the loss of the path" down "$1"
	start_server "${listen[@]}"
	wait_until "the path" up "$1"
	come_and_go
	call "$1" list
}

# ---- stderr is a pipe ----

new_pipe server
SERVER_PREFIX=$mute start_server "${listen[@]}"
start_gateway "${client[@]}" control="$tmp/gate.ctl"
fill_pipe
server_works

start_server "${listen[@]}"
new_pipe gateway
GATEWAY_PREFIX=$mute start_gateway -v "${client[@]}" control="$tmp/gateway.ctl"
fill_pipe
gateway_works gateway
stop_process "$gateway_pid"

new_pipe nbdkit
NBDKIT_PREFIX=$mute start_nbdkit "${client[@]}" control="$tmp/nbdkit.ctl"
fill_pipe
gateway_works nbdkit
# exit() of glibc 2.41 waits for the lock of stderr, which a thread of the plugin has that stands in
# nbdkit's own code: here the thread that listens for the end of nbdkit.
stop_process "$nbdkit_pid"

# And here that of the log, with an error.
new_pipe error
NBDKIT_PREFIX=$mute start_nbdkit "${client[@]}"
fill_pipe
expect_failure 1 'Input/output error' nbdsh -u "$uri" \
	-c "import os; os.truncate('$tmp/disk', 0); h.pread(512, 0)"
stop_process "$nbdkit_pid"
truncate -s 16M "$tmp/disk"

# ---- the system log and the journal do not read ----

[ "$IN_NAMESPACE" = yes ] ||
	skip "no mount namespace: the system log and the journal were not tried"
mkdir "$tmp/dev" "$tmp/journal"
mount --rbind /dev "$tmp/dev" && mount -t tmpfs none /dev ||
	skip "cannot mount over /dev: the system log and the journal were not tried"
cleanup_fn umount --lazy "$tmp/dev"
cleanup_fn umount --lazy /dev
ln -s "$tmp"/dev/* /dev/
rm -f /dev/log
new_socket /dev/log

# become_daemon NAME COMMAND...
become_daemon() {
	local daemon
	sock=$tmp/$1.sock uri="nbd+unix:///?socket=$tmp/$1.sock"
	"${@:2}" "${client[@]}" control="$tmp/$1.ctl" </dev/null >"$tmp/$1.log" 2>&1
	wait_until "the daemon" test -s "$tmp/$1.pid"
	daemon=$(cat "$tmp/$1.pid")
	cleanup_fn stop_daemon "$daemon"
	gateway_works "$1"
	stop_daemon "$daemon"
}
become_daemon nbd-daemon "$RTRS_NBD" -v -U "$tmp/nbd-daemon.sock" -P "$tmp/nbd-daemon.pid"
become_daemon nbdkit-daemon nbdkit -U "$tmp/nbdkit-daemon.sock" -P "$tmp/nbdkit-daemon.pid" \
	"$RTRS_PLUGIN"
stop_process "$server_pid"

if [ ! -d /run/systemd/journal ]; then
	mount -t tmpfs tmpfs /run
	mkdir -p /run/systemd/journal
fi
mount --bind "$tmp/journal" /run/systemd/journal || skip "cannot mount over the journal's socket"
cleanup_umount /run/systemd/journal
new_socket /run/systemd/journal/socket
cat >"$tmp/service.sh" <<'SH'
JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"
SH
SERVER_PREFIX="sh $tmp/service.sh" start_server "${listen[@]}"
start_gateway "${client[@]}" control="$tmp/gate.ctl"
server_works
