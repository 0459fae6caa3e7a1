#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Entries of the journal have fields: a receiver in the journal's place, in a mount namespace, hears
# what both programs send, and the names in the entries are those of rtrsctl and of the metrics.
. "$(dirname "$0")/own-namespace.sh" --mount
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires nbdsh --version
requires /usr/bin/python3 --version
requires curl --version
[ "$IN_NAMESPACE" = yes ] || skip "no mount namespace: the journal's socket cannot be replaced"

mkdir "$tmp/journal" "$tmp/small" "$tmp/run"
if [ -d /run/systemd/journal ]; then
	mount --bind "$tmp/journal" /run/systemd/journal
else
	# Programs find a /run of their own, which has nothing else.
	mount -t tmpfs tmpfs /run
	mkdir -p /run/systemd/journal
	mount --bind "$tmp/journal" /run/systemd/journal
fi || skip "cannot mount over /run/systemd/journal here"
cleanup_umount /run/systemd/journal

# Prints an entry as a line: |NAME=VALUE|NAME=VALUE|, sorted.
cat >"$tmp/journald.py" <<'PY'
import socket, struct, sys

def fields(data):
    while data:
        line, data = data.split(b"\n", 1)
        if b"=" not in line:
            n, = struct.unpack("<Q", data[:8])
            line, data = line + b"=" + data[8:8 + n], data[8 + n + 1:]
        yield line.decode()

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print("|" + "|".join(sorted(fields(s.recv(1 << 20)))) + "|", flush=True)
PY
/usr/bin/python3 "$tmp/journald.py" "$tmp/journal/socket" >"$tmp/entries" &
cleanup_fn kill_process $!
wait_line "$tmp/entries" '^bound'

# entry NAME FIELD=VALUE...: wait for an entry with the id of NAME and these fields.
id_of() {
	sed -n "s/.*ROW($1, \"\\([0-9a-f]*\\)\".*/\\1/p" "$top_srcdir/src/common/base/log.h"
}
has_entry() {
	local left field
	left=$(cat "$tmp/entries")
	for field; do
		left=$(grep -F "|$field|" <<<"$left") || return
	done
}
entry() {
	local id
	id=$(id_of "$1")
	[ ${#id} -eq 32 ] || fail "no id of $1"
	wait_until "an entry $*" has_entry "MESSAGE_ID=$id" "${@:2}" ||
		{ cat "$tmp/entries"; exit 1; }
}

# stderr is the journal, as for a service.
cat >"$tmp/service.sh" <<'SH'
JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"
SH

mount -t tmpfs -o size=8m tmpfs "$tmp/small"
cleanup_umount "$tmp/small"
truncate -s 64M "$tmp/small/disk"
truncate -s 8M "$tmp/grows"
write_conf() {
	printf '%s\n' '[server]' "listen = tcp://127.0.0.1:0" "listen = unix:$tmp/rtrs.sock" \
		"allow = 127.0.0.1" "$@" >"$tmp/conf"
}
full=('[export "full"]' "path = $tmp/small/disk")
grows=('[export "grows"]' "path = $tmp/grows")
write_conf "allow = uid:$(id -u)" "${full[@]}" "${grows[@]}"
SERVER_PREFIX="sh $tmp/service.sh" start_server --config "$tmp/conf" --control "$tmp/control" \
	--state-dir "$tmp/state"
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
version=$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$top_builddir/config.h")
entry STARTED PRIORITY=6 SYSLOG_IDENTIFIER=rtrs-server "MESSAGE=ready, version $version"
entry EXPORT_ADDED EXPORT=full
must_fail grep -q -e ready "$server_log"

GATEWAY_PREFIX="sh $tmp/service.sh" start_gateway "server=unix:$tmp/rtrs.sock" sessname=gw \
	control="$tmp/gate.sock" "metrics=unix:$tmp/metrics.sock"
gate=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/gate.sock")
full_uri="nbd+unix:///full?socket=$sock"

# A path has one name: in the log, in rtrsctl, in the metrics.
path=unix:$tmp/rtrs.sock
entry SESSION_OPENED SESSION=gw
server_path=$("${ctl[@]}" list --json | grep -o '"gw/[^"]*"' | tr -d '"' | head -n 1)
[ -n "$server_path" ]
entry PATH_UP SESSION=gw "PEER=$server_path"
"${gate[@]}" list --json | grep -F "\"$path\""
curl --silent --show-error --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics.sock" \
	http://localhost/metrics | grep -F "rtrs_client_path_up{path=\"$path\""

# What fails has the name of its export.
nbdsh_run "$full_uri" <<'PY'
try:
    for i in range(16):
        h.pwrite(b"a" * (1 << 20), i << 20)
except nbd.Error as e:
    assert e.errno == "ENOSPC", e
else:
    raise SystemExit("the file system is not full")
PY
entry DEVICE_OPENED SESSION=gw EXPORT=full "PEER=$server_path" MODE=rw
entry IO_FAILED EXPORT=full PRIORITY=3
entry DEVICE_CLOSED SESSION=gw EXPORT=full
must_fail nbdinfo "nbd+unix:///none%0A?socket=$sock"
entry OPEN_REFUSED SESSION=gw EXPORT=none? SYSLOG_IDENTIFIER=rtrs-server REASON=missing MODE=rw
entry OPEN_REFUSED EXPORT=none? SYSLOG_IDENTIFIER=rtrs-nbd

# Changes.
truncate -s 16M "$tmp/grows"
"${ctl[@]}" export resize grows
entry EXPORT_RESIZED EXPORT=grows
"${ctl[@]}" export set grows iops=1000
entry LIMITS_SET EXPORT=grows
write_conf "allow = uid:$(id -u)" "${full[@]}" 'mode = wr'
must_fail "${ctl[@]}" reload
entry RELOAD_REFUSED PRIORITY=3
write_conf "allow = uid:$(id -u)" "listen = unix:$tmp/more.sock" "${full[@]}"
"${ctl[@]}" reload
entry LISTENING
write_conf "allow = uid:$(id -u)" "${full[@]}"
"${ctl[@]}" reload
entry LISTEN_LOST
entry RELOADED
entry EXPORT_REMOVED EXPORT=grows

# Peers that have no business here.
/usr/bin/python3 - "$sock" "$server_port" <<'PY'
import socket, sys
nbd = socket.socket(socket.AF_UNIX)
nbd.connect(sys.argv[1])
nbd.sendall(b"\xff" * 64)
while nbd.recv(4096):
    pass
cut = socket.socket(socket.AF_UNIX)
cut.connect(sys.argv[1])
cut.recv(18)
cut.sendall(b"\0\0\0\3IHA")     # less than the head of an option
cut.close()
rtrs = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
rtrs.sendall(b"GET / HTTP/1.0\r\n\r\n" * 64)
try:
    while rtrs.recv(4096):
        pass
except ConnectionResetError:
    pass
PY
entry PEER_GARBAGE SYSLOG_IDENTIFIER=rtrs-nbd
entry CLIENT_DROPPED SYSLOG_IDENTIFIER=rtrs-nbd
entry PEER_GARBAGE SYSLOG_IDENTIFIER=rtrs-server

# An export that is taken away, and a path that is lost and comes back.
nbdsh_run "$full_uri" <<PY
import subprocess
subprocess.run(["$top_builddir/rtrsctl", "--socket", "$tmp/control", "export", "kick", "full"],
               check=True)
PY
entry DEVICE_KICKED SESSION=gw EXPORT=full PRIORITY=4
"${ctl[@]}" path disconnect "$server_path"
entry PATH_DOWN SESSION=gw "PEER=$path" PRIORITY=4
entry PATH_DOWN SESSION=gw "PEER=$server_path" PRIORITY=6
entry SESSION_CLOSED SESSION=gw
entry PATH_UP SESSION=gw "PEER=$path" PRIORITY=4
stop_server "$server_pid"
entry STOPPING
entry PATH_FAILED SESSION=gw "PEER=$path"

# A stream of another process is no journal, nor is a file with its number on another device.
cat >"$tmp/other.sh" <<'SH'
JOURNAL_STREAM=$(stat -L -c 1%d:%i /proc/self/fd/2) exec "$@"
SH
for other in "env JOURNAL_STREAM=1:1" "sh $tmp/other.sh"; do
	SERVER_PREFIX=$other start_server --listen "unix:$tmp/other.sock" "d=mem:1M"
	wait_line "$server_log" 'rtrs-server: info: ready'
	stop_server "$server_pid"
done

# Who has a name is called by it: who came, what was opened for what, what was refused and why.
umask 077
"$top_builddir/rtrs-psk" gw1 >"$tmp/gw1.psk"
"$top_builddir/rtrs-psk" gw2 >"$tmp/gw2.psk"
cat "$tmp/gw1.psk" "$tmp/gw2.psk" >"$tmp/keys"
SERVER_PREFIX="sh $tmp/service.sh" start_server --tls=require --tls-psk="$tmp/keys" --control none \
	one=mem:1M,allow=psk:gw1,read-only=psk:gw2 two=mem:1M,allow=psk:gw1
bench=(timeout "$TIMEOUT_S" "$top_builddir/rtrs-bench" --number-ios=1)
"${bench[@]}" --tls-psk="$tmp/gw1.psk" --sessname=s1 --rw=randwrite \
	"127.0.0.1:$server_port" one
entry SESSION_OPENED SESSION=s1 IDENTITY=psk:gw1
entry DEVICE_OPENED SESSION=s1 EXPORT=one IDENTITY=psk:gw1 MODE=rw
must_fail "${bench[@]}" --tls-psk="$tmp/gw2.psk" --sessname=s2 --rw=randwrite \
	"127.0.0.1:$server_port" one
entry OPEN_REFUSED SESSION=s2 EXPORT=one IDENTITY=psk:gw2 MODE=rw REASON=read_only
must_fail "${bench[@]}" --tls-psk="$tmp/gw2.psk" --sessname=s2 "127.0.0.1:$server_port" two
entry OPEN_REFUSED SESSION=s2 EXPORT=two IDENTITY=psk:gw2 REASON=rights
# A second session of one client under one name.
"$top_builddir/rtrs-bench" --runtime=1000 --tls-psk="$tmp/gw2.psk" --sessname=s3 \
	"127.0.0.1:$server_port" one &
first=$!
cleanup_fn stop_daemon $first
entry DEVICE_OPENED SESSION=s3 EXPORT=one IDENTITY=psk:gw2 MODE=ro
must_fail "${bench[@]}" --tls-psk="$tmp/gw2.psk" --sessname=s3 "127.0.0.1:$server_port" one
entry PATH_FAILED IDENTITY=psk:gw2
must_fail grep -E '\|[A-Z_]+=\|' "$tmp/entries"
