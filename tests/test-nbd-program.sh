#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-nbd as a program: at TCP, at a socket of its starter, with --run, as a daemon; rtrsctl finds
# it.
. ./tests/functions.sh
requires_server; requires_gateway
requires nbdinfo --version

truncate -s 4M "$tmp/disk"
start_server "disk=$tmp/disk" "other=$tmp/disk" --no-lock
server=server=127.0.0.1:$server_port

# --run: the command hears where the socket is, and its status is that of rtrs-nbd, whose starter
# ignores the ends of its children.  A SIGHUP, which comes first, ends nothing.
status=0
# shellcheck disable=SC2016 # the command's
timeout "$TIMEOUT_S" env --ignore-signal=CHLD "$RTRS_NBD" -U - "$server" export=disk --run '
	echo "$unixsocket"
	[ -S "$unixsocket" ] && nbdinfo --size "$uri" && kill -HUP $PPID &&
		exit 7' >"$tmp/run.out" || status=$?
[ $status -eq 7 ] || fail "status $status"
grep -qx 4194304 "$tmp/run.out"
own=$(head -n 1 "$tmp/run.out")
[ "${own##*/}" = socket ] || fail "where is its socket?"
[ ! -e "${own%/*}" ] || fail "its socket is left behind"

# TCP, at a port that the kernel chooses; the client asks for a name, and for the list of them.
# shellcheck disable=SC2016
timeout "$TIMEOUT_S" "$RTRS_NBD" -p 0 -e other "$server" --run '
	echo "port $port"; nbdinfo --size "$uri"; nbdinfo --list "nbd://127.0.0.1:$port"
	' >"$tmp/tcp.out"
cat "$tmp/tcp.out"
grep -q '^port [1-9]' "$tmp/tcp.out"
grep -qx 4194304 "$tmp/tcp.out"
grep -q 'export="disk"' "$tmp/tcp.out"
grep -q 'export="other"' "$tmp/tcp.out"

# An export that is not there.
start_gateway "$server"
must_fail timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///nothing?socket=$sock"
grep -q "export 'nothing' of server=.*no such export" "$gateway_log"
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///disk?socket=$sock")" = 4194304 ]
timeout "$TIMEOUT_S" ./rtrsctl show >"$tmp/show.out"
cat "$tmp/show.out"
grep -q rtrs-nbd "$tmp/show.out"
stop_process "$gateway_pid"

# Read-only.
start_gateway -r "$server" export=disk
timeout "$TIMEOUT_S" nbdinfo --is readonly "$uri"

# With export= a client gets this export, whatever it asks for.
timeout "$TIMEOUT_S" nbdinfo "nbd+unix:///other?socket=$sock" >"$tmp/other.out"
cat "$tmp/other.out"
grep -q "RNBD export 'disk' of" "$tmp/other.out"
stop_process "$gateway_pid"

# Socket activation: the next process takes the socket over.
cat >"$tmp/activate.py" <<'END'
import os, socket, sys
path, *argv = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
s.bind(path)
s.listen(8)
if s.fileno() != 3:
    os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ["LISTEN_FDS"] = "1"
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(argv[0], argv)
END
/usr/bin/python3 "$tmp/activate.py" "$tmp/given.sock" \
	"$RTRS_NBD" -P "$tmp/given.pid" "$server" export=disk </dev/null >"$tmp/given.log" 2>&1 &
given_pid=$!
cleanup_fn stop_process "$given_pid"
wait_until "rtrs-nbd" nbdkit_ready_or_ended "$given_pid" "$tmp/given.pid"
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$tmp/given.sock")" = 4194304 ]
stop_process "$given_pid"
[ -S "$tmp/given.sock" ] || fail "the socket is not its own to remove"
rm "$tmp/given.sock"
expect_failure 1 "LISTEN_FDS passes sockets: remove --unix, --ipaddr, --port and --run" \
	/usr/bin/python3 "$tmp/activate.py" "$tmp/given.sock" \
	"$RTRS_NBD" --run true "$server" export=disk

# Sockets that another process was given are none, and the log says so.
LISTEN_FDS=1 LISTEN_PID=1 "$RTRS_NBD" -f -U "$tmp/own.sock" -P "$tmp/own.pid" "$server" \
	export=disk </dev/null >"$tmp/own.log" 2>&1 &
own_pid=$!
cleanup_fn stop_process "$own_pid"
wait_until "rtrs-nbd" nbdkit_ready_or_ended "$own_pid" "$tmp/own.pid"
grep -q "LISTEN_PID .1.: expected $own_pid, the process of rtrs-nbd: the sockets of LISTEN_FDS " \
	"$tmp/own.log"
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$tmp/own.sock")" = 4194304 ]
stop_process "$own_pid"

# A daemon: the command ends when clients can come, and a lock of the caller is not the daemon's.
exec 9>"$tmp/lock"
flock 9
timeout "$TIMEOUT_S" "$RTRS_NBD" -U "$tmp/daemon.sock" -P "$tmp/daemon.pid" "$server" export=disk \
	</dev/null
exec 9>&-
flock --nonblock "$tmp/lock" true || fail "the daemon holds a lock of its caller"
daemon_pid=$(cat "$tmp/daemon.pid")
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$tmp/daemon.sock")" = 4194304 ]
[ "$(readlink "/proc/$daemon_pid/cwd")" = / ]
stop_daemon "$daemon_pid"
[ ! -e "$tmp/daemon.sock" ]
[ ! -e "$tmp/daemon.pid" ]

# A typo names an image: it is not lost.  What is no file any more, or another process's, stays.
cp "$tmp/disk" "$tmp/image"
# A device node that takes no number stays.
if mknod "$tmp/full" c 1 7 2>/dev/null; then
	expect_failure 1 "--pidfile '$tmp/full': " \
		"$RTRS_NBD" -U "$tmp/daemon.sock" -P "$tmp/full" "$server" export=disk
	[ -c "$tmp/full" ] || fail "the pidfile has removed a device node"
fi
expect_failure 1 "--pidfile '$tmp/image': exists and has no number of a process: name another" \
	"$RTRS_NBD" -U "$tmp/daemon.sock" -P "$tmp/image" "$server" export=disk
cmp "$tmp/disk" "$tmp/image"
mknod "$tmp/null" c 1 3 2>/dev/null || ln -s /dev/null "$tmp/null"
for file in null pid; do
	timeout "$TIMEOUT_S" "$RTRS_NBD" -P "$tmp/$file" "$server" export=disk \
		--run "echo 1 >$tmp/pid"
	[ -e "$tmp/$file" ] || fail "$file has gone"
done

# What is wrong is one line.
refuse() {
	expect_failure "$@"
}
refuse 2 "option '--filter=x' is nbdkit's: .*use nbdkit --filter" "$RTRS_NBD" --filter=x "$server"
refuse 2 "option '-t' is nbdkit's: there is no thread" "$RTRS_NBD" -t 32 "$server"
refuse 2 "unknown parameter 'exprot' \(did you mean export=\?\)" "$RTRS_NBD" "$server" exprot=disk
refuse 2 "'port': write server=HOST:9, or --port=9 for NBD clients" "$RTRS_NBD" "$server" port=9
refuse 2 "'threads': the option is --threads" "$RTRS_NBD" "$server" threads=4
refuse 1 "--ipaddr '\*' --port '10809': '\*' is no address: 0\.0\.0\.0 " \
	"$RTRS_NBD" -i '*' "$server"
refuse 2 "--exportname: expected with --run, .* the server's export is export=NAME" \
	"$RTRS_NBD" -e disk "$server"
printf 'server = %s\nexportname = disk\n' "$server" >"$tmp/wrong.conf"
refuse 2 "--exportname: expected with --run" "$RTRS_NBD" config="$tmp/wrong.conf" --check
refuse 2 "'disk': expected KEY=VALUE" "$RTRS_NBD" "$server" disk
refuse 2 "--unix with --ipaddr" "$RTRS_NBD" -U "$tmp/x" -p 1 "$server"
for port in 65536 99999 nbd ''; do
	refuse 2 "--port '$port': expected a number from 0 to 65535" \
		"$RTRS_NBD" -p "$port" "$server"
done
refuse 2 "expected with --run" "$RTRS_NBD" -U - "$server"
refuse 2 "--memory '1': expected" "$RTRS_NBD" --memory=1 "$server"
refuse 1 "cannot listen on 192.0.2.1 port 10809: " "$RTRS_NBD" -i 192.0.2.1 "$server"
refuse 1 "no such export for this client; it has disk" "$RTRS_NBD" -f -U "$tmp/x" "$server" export=nothing
[ ! -e "$tmp/x" ] || fail "a socket is left behind"
