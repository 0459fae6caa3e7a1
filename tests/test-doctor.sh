#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl doctor" on a machine without programs, with files that no program could start with, and
# beside programs that run: each mistake has its line, and the status is that of the worst.
# tests/guest/test-units.sh has units and an RDMA device.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
requires_server; requires_gateway
rtrsctl=$top_builddir/rtrsctl

# doctor STATUS [ARGUMENT...]: the clock of the machine is not this test's, so a 0 may be a 1.
doctor() {
	local want=$1 status=0
	shift
	"${as_user[@]}" "$rtrsctl" doctor "$@" >"$tmp/doctor" 2>&1 || status=$?
	cat "$tmp/doctor"
	[ $status -eq "$want" ] || [ "$want$status" = 01 ] || fail "status $status, not $want"
}
as_user=()
says() { grep -q -E -- "$1" "$tmp/doctor" || fail "does not say: $1"; }
says_nothing_bad() { must_fail grep -E \
	'^(bad|warn) [^:]*: (ver|peer|files|conf|key|image|path|mtu)' \
	"$tmp/doctor"; }

# Nothing runs.  All lines have one form; with --json they are objects.
doctor 0
[ "$(grep -c -v -E '^(ok  |warn|bad ) [a-z_]+: .' "$tmp/doctor")" -eq 0 ]
says '^(ok  |warn) clock: [0-9]{4}-[0-9]{2}-[0-9]{2}'
says '^(ok  |warn|bad ) io_uring: '
says '^(ok  |warn) rdma: '
"$rtrsctl" --json doctor >"$tmp/json" || [ $? -eq 1 ]
python3 - "$tmp/json" <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["ok"] and answer["level"] in ("OK", "WARNING"), answer
for finding in answer["findings"]:
    assert finding["level"] in ("ok", "warn", "bad") and finding["text"], finding
assert {"clock", "rdma", "io_uring"} <= {f["what"] for f in answer["findings"]}
END
doctor 3 one two
says '^RTRS UNKNOWN - doctor: .two. is one word too many'
doctor 3 --watch
says '^RTRS UNKNOWN - doctor looks once: leave --watch out'
doctor 3 --name nobody
says '^RTRS UNKNOWN - no program with a control socket'
doctor 2 "$tmp/none"
says "^bad  $tmp/none: file: $tmp/none: No such file"

# A clock that is behind what was installed.
cp "$rtrsctl" "$tmp/rtrsctl"
touch -d '2 days' "$tmp/rtrsctl"
rtrsctl=$tmp/rtrsctl doctor 2
says '^bad  clock: it is .* by the clock, and this program was installed on'

# Files of a server, with one mistake each.  Programs of another user read them, too.
chmod 755 "$tmp"
truncate -s 1M "$tmp/disk" "$tmp/two"
(umask 077; "$top_builddir/rtrs-psk" gw1 >"$tmp/keys")
conf() {
	printf '[server]\nlisten = unix:%s/rtrs.sock\n%s\n[export "disk"]\npath = %s\n' "$tmp" \
		"$1" \
		"$2" >"$tmp/server.conf"
}
file="$tmp/server.conf"
conf "tls-psk = $tmp/keys" "$tmp/disk"
doctor 0 "$file"
says "^ok   $file: key: tls-psk=$tmp/keys: 1 key\$"
says "^ok   $file: image: disk=$tmp/disk: user [0-9]+ .*may read and write it\$"
says "^ok   $file: configuration: right \(rtrs-server --check --config=$file\)\$"
says_nothing_bad
# The package of the program was removed.
rtrsctl=$tmp/rtrsctl doctor 2 "$file"
says "^warn $file: configuration: rtrs-server is not installed: install its package, or remove"
mkdir "$file.d"
touch "$file.d/forgotten" "$file.d/old.conf~" "$file.d/x.conf.bak"
doctor 1 "$file"
says "^warn $file: configuration: $file.d/forgotten is not read: its name does not end in .conf\$"
[ "$(grep -c 'is not read' "$tmp/doctor")" -eq 1 ]
rm -r "$file.d"
chmod 644 "$tmp/keys"
doctor 2 "$file"
says "^bad  $file: key: tls-psk=$tmp/keys: expected mode 0600, not 0644: others could read"
says "^bad  $file: configuration: .*: .*0644"
chmod 600 "$tmp/keys"
touch -d '3 days' "$tmp/keys"
doctor 1 "$file"
says "^warn $file: key: tls-psk=$tmp/keys: was changed in the future: the clock is wrong"
conf 'threds = 3' "$tmp/disk"
doctor 2 "$file"
says "^bad  $file: configuration: .*:3: 'threds' is no option .*threads\\?"
conf 'allow = 192.0.2.0/24' "$tmp/no-disk"
doctor 2 "$file"
says "^bad  $file: image: disk=$tmp/no-disk: No such file or directory: create it, or correct"
# What no server exports, although it may be read and written.
mkfifo "$tmp/fifo"
: >"$tmp/empty"
for image in /dev/null "$tmp" "$tmp/fifo"; do
	conf 'threads = 1' "$image"
	doctor 2 "$file"
	says "^bad  $file: image: disk=$image: expected a regular file or a block device"
done
conf 'threads = 1' "$tmp/empty"
doctor 2 "$file"
says "^bad  $file: image: disk=$tmp/empty: is empty: give it a size"
truncate -s 513 "$tmp/empty"
doctor 2 "$file"
says "^bad  $file: image: disk=$tmp/empty: has 513 bytes, .*: round it up: truncate -s %512 FILE\$"
conf 'listen = tcp://0.0.0.0:0' "$tmp/disk"
doctor 1 "$file"
says "^warn $file: configuration: .* without --allow: every host"
# An address of another machine, and directories that are not there.
conf 'listen = tcp://192.0.2.9:1234,auth=none' "$tmp/disk"
"$rtrsctl" doctor "$file" >"$tmp/doctor" 2>&1 || [ $? -eq 2 ]
says "^bad  $file: listen: tcp://192.0.2.9:1234: no interface of this machine has the address: "
conf "listen = tcp://127.0.0.1:1234
state-dir = $tmp/no-state
metrics-file = $tmp/disk/rtrs.prom" "$tmp/disk"
"$rtrsctl" doctor "$file" >"$tmp/doctor" 2>&1 || [ $? -eq 2 ]
says "^ok   $file: listen: tcp://127.0.0.1:1234: this machine has the address"
says "^ok   $file: directory: state-dir=$tmp/no-state: user [0-9]+ .*may make it\$"
says "^bad  $file: directory: metrics-file=$tmp/disk/: Not a directory: "
conf "listen = tcp://127.0.0.1:1234
state-dir = $tmp/no/state
metrics-file = $tmp/no/rtrs.prom" "$tmp/disk"
"$rtrsctl" doctor "$file" >"$tmp/doctor" 2>&1 || [ $? -eq 2 ]
says "^bad  $file: directory: state-dir=$tmp/no/state: No such file or directory: create it, or"
says "^warn $file: directory: metrics-file=$tmp/no/: No such file or directory: create it, or"
# An export that is read alone needs no right to write; further files are part of it.
mkdir "$file.d"
printf '[export "two"]\npath = %s\nmode = ro\n' "$tmp/two" >"$file.d/two.conf"
conf 'threads = 1' "$tmp/disk"
doctor 0 "$file"
says "^ok   $file: image: two=$tmp/two: user [0-9]+ .*may read it\$"
# The file may have no section of its own.
echo '# all of it is in the directory' >"$file"
doctor 0 "$file"
says "^ok   $file: image: two=$tmp/two: user [0-9]+ .*may read it\$"
rm -r "$file.d"

# Files of a gateway.
printf 'server = unix:%s/nobody.sock\nexport = disk\n' "$tmp" >"$tmp/gateway.conf"
doctor 1 "$tmp/gateway.conf"
says "^warn $tmp/gateway.conf: path: .*nobody.sock does not take a connection: No such file"
echo 'export = disk' >"$tmp/gateway.conf"
doctor 2 "$tmp/gateway.conf"
says "^bad  $tmp/gateway.conf: path: the file names no server: expected server=HOST"
# The address of a path is behind its source, with the transport in front or of the file.
printf '%s\n' 'path = rdma://127.0.0.2@127.0.0.1:9' 'path = 127.0.0.2,127.0.0.1:9' \
	'path = tcp://127.0.0.2@127.0.0.1:9' >"$tmp/gateway.conf"
"$rtrsctl" doctor "$tmp/gateway.conf" >"$tmp/doctor" 2>&1 || [ $? -le 2 ]
rdma='(over RDMA, which only a start tries|.*rdma.*)'
refused='127.0.0.1:9 does not take a connection: Connection refused'
says "^(ok  |bad ) $tmp/gateway.conf: path: rdma://127.0.0.2@127.0.0.1:9: $rdma\$"
says "^warn $tmp/gateway.conf: path: 127.0.0.2,127.0.0.1:9: $refused\$"
says "^warn $tmp/gateway.conf: path: tcp://127.0.0.2@127.0.0.1:9: $refused\$"
printf 'transport = rdma\nserver = 127.0.0.1:9\n' >"$tmp/gateway.conf"
"$rtrsctl" doctor "$tmp/gateway.conf" >"$tmp/doctor" 2>&1 || [ $? -le 2 ]
says "^(ok  |bad ) $tmp/gateway.conf: path: 127.0.0.1:9: $rdma\$"
echo 'export = disk' >"$tmp/gateway.conf"
# Its further files count, and one that cannot be read is a mistake.
mkdir "$tmp/gateway.conf.d"
echo "path = unix:$tmp/saved.sock" >"$tmp/gateway.conf.d/rtrsctl-saved.conf"
doctor 1 "$tmp/gateway.conf"
says "^warn $tmp/gateway.conf: path: .*saved.sock does not take a connection: No such file"
mkfifo "$tmp/gateway.conf.d/fifo.conf"
doctor 2 "$tmp/gateway.conf"
says "^bad  $tmp/gateway.conf: file: $tmp/gateway.conf.d/fifo.conf: expected a regular file\$"
says "^warn $tmp/gateway.conf: path: .*saved.sock does not take"
rm -r "$tmp/gateway.conf.d"
echo >"$tmp/gateway.conf.d"
doctor 2 "$tmp/gateway.conf"
says "^bad  $tmp/gateway.conf: file: $tmp/gateway.conf.d: Not a directory\$"
rm "$tmp/gateway.conf.d"
# Mistakes in the file of a gateway are those that rtrs-nbd would end with.
right="configuration: right \\(rtrs-nbd --check config=$tmp/gateway.conf\\)"
printf 'server = 127.0.0.1:9\ntls = required\nheartbeat = x\n' >"$tmp/gateway.conf"
doctor 2 "$tmp/gateway.conf"
says "^bad  $tmp/gateway.conf: configuration: $tmp/gateway.conf:2: tls 'required': expected off, on or require"
printf 'server = 127.0.0.1:9\niops = 5\n' >"$tmp/gateway.conf"
expect_failure 2 ":2: 'iops' is an option of rtrs-server: expected it in the file of the server" \
	"$RTRS_NBD" --check "config=$tmp/gateway.conf"
printf '[gateway]\nserver = 127.0.0.1:9\n' >"$tmp/gateway.conf"
doctor 2 "$tmp/gateway.conf"
says "^bad  $tmp/gateway.conf: configuration: $tmp/gateway.conf:1: .*: this file has no sections"
expect_failure 2 "this file has no sections" "$RTRS_NBD" --check "config=$tmp/gateway.conf"
printf 'server = 127.0.0.1:9\n' >"$tmp/gateway.conf"
doctor 1 "$tmp/gateway.conf"
says "^ok   $tmp/gateway.conf: $right\$"
"$RTRS_NBD" --check "config=$tmp/gateway.conf"

# Programs that run.
start_server --listen tcp://127.0.0.1:0 --tls=on --tls-psk "$tmp/keys" "disk=$tmp/disk"
# A file that was changed after it was read.
touch "$tmp/keys"
doctor 1 --server
says "^warn rtrs-server disk: reload: $tmp/keys was changed .*: rtrsctl --pid $server_pid reload, "
"$rtrsctl" --server reload
doctor 0 --server
must_fail grep -E ' reload: ' "$tmp/doctor"
printf 'server = 127.0.0.1:%s\nexport = disk\n' "$server_port" >"$tmp/gateway.conf"
doctor 0 "$tmp/gateway.conf"
says "^ok   $tmp/gateway.conf: path: .*:$server_port takes connections"
says "^ok   $tmp/gateway.conf: mtu: 127.0.0.1:$server_port: packets of 65535 bytes, as lo has them"
start_gateway "127.0.0.1:$server_port" export=disk
wait_until "the path" "$rtrsctl" --gateway check
# ps shows the command line as it was given.
tr '\0' '\n' <"/proc/$gateway_pid/cmdline" | grep -q -x export=disk ||
	fail "the command line: $(tr '\0' ' ' <"/proc/$gateway_pid/cmdline")"
doctor 0
version=$("$rtrsctl" --version | sed 's/.* //')
says_nothing_bad
for program in 'rtrs-server disk' 'rtrs-nbd disk'; do
	says "^ok   $program: version: $version\$"
	says "^ok   $program: peer: .*: the other end has all of this version"
	says "^ok   $program: files: [0-9]+ of at most [0-9]+ are open"
	says "^ok   $program: mtu: .*:$server_port: packets of 65535 bytes, as lo has them"
done
says "^ok   rtrs-server disk: key: tls-psk=$tmp/keys: 1 key"
says "^ok   rtrs-server disk: image: disk=$tmp/disk: user [0-9]+ .*may read and write it"
doctor 0 --gateway
must_fail grep -E 'rtrs-server|io_uring' "$tmp/doctor"
stop_process "$gateway_pid"
# A path that nobody has answered yet; after 10 s its cause is known.
/usr/bin/python3 -c 'import signal, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
signal.pause()' "$tmp/silent" &
silent_pid=$!
cleanup_fn kill_process "$silent_pid"
wait_until "a peer that is silent" test -S "$tmp/silent"
start_gateway "127.0.0.1:$server_port" "path=unix:$tmp/silent" export=disk "tls-psk=$tmp/keys"
"$rtrsctl" --gateway doctor >"$tmp/doctor" 2>&1 || [ $? -le 2 ]
says '^(warn|bad ) rtrs-nbd disk: path: .*silent is not up .*: (no answer yet|.* said nothing)'
must_fail grep -E ' reload: ' "$tmp/doctor"
touch "$tmp/keys"
"$rtrsctl" --gateway doctor >"$tmp/doctor" 2>&1 || [ $? -le 2 ]
says "^warn rtrs-nbd disk: reload: $tmp/keys was changed .*: rtrsctl --pid $gateway_pid reload, "
"$rtrsctl" --gateway reload
"$rtrsctl" --gateway doctor >"$tmp/doctor" 2>&1 || [ $? -le 2 ]
must_fail grep -E ' reload: ' "$tmp/doctor"
stop_process "$gateway_pid"
kill_process "$silent_pid"
# A limit of descriptors that is nearly reached.
prlimit --pid "$server_pid" --nofile="$(($(find "/proc/$server_pid/fd" | wc -l) + 4)):" ||
	skip "all but limits: prlimit does not work here"
doctor 1 --server
says '^warn rtrs-server disk: files: [0-9]+ of at most [0-9]+ are open, .*LimitNOFILE='
stop_server "$server_pid"

# An export of a running server that has no storage.
printf '[export "gone"]\npath = %s/gone\n' "$tmp" >"$tmp/half.conf"
start_server --config "$tmp/half.conf" "disk=$tmp/disk"
doctor 2 --server
says "^bad  rtrs-server [a-z]+: export: gone failed: export 'gone': .*$tmp/gone.*No such file"
says "^ok   rtrs-server [a-z]+: image: disk=$tmp/disk: "
# What the program has saved by itself waits for no reload; what others have written does.
"$rtrsctl" --server export add more=mem:1M
"$rtrsctl" --server save
doctor 2 --server
must_fail grep -E ' reload: ' "$tmp/doctor"
printf '[export "late"]\npath = mem:1M\n' >"$tmp/half.conf.d/late.conf"
doctor 2 --server
says "^warn rtrs-server [a-z]+: reload: $tmp/half.conf.d/late.conf was changed "
rm -r "$tmp/half.conf.d"
stop_server "$server_pid"

# Names of files are those of the program's directory, and a unit's are below /.
mkdir "$tmp/work"
cp -p "$tmp/keys" "$tmp/work/own-keys"
conf 'tls-psk = own-keys' "$tmp/disk"
mv "$file" "$tmp/work/own.conf"
SERVER_PREFIX="env -C $tmp/work" start_server --config own.conf
doctor 0 --server
says '^ok   rtrs-server [a-z]+: configuration: right'
says '^ok   rtrs-server [a-z]+: key: tls-psk=.*own-keys: 1 key'
touch "$tmp/work/own.conf"
doctor 1 --server
says '^warn rtrs-server [a-z]+: reload: own.conf was changed since'
stop_server "$server_pid"

# A program whose file has been replaced since.
cp "$RTRS_SERVER" "$tmp/rtrs-server"
RTRS_SERVER=$tmp/rtrs-server start_server "disk=$tmp/disk"
cp "$top_builddir/rtrs-server" "$tmp/new"
mv "$tmp/new" "$tmp/rtrs-server"
doctor 1 --server
says '^warn rtrs-server disk: version: its file was replaced .* restart it'
stop_all_threads "$server_pid"
doctor 2 --server
says '^bad  program: .*: the program does not answer'
kill -CONT "$server_pid"
stop_server "$server_pid"

[ "$(id -u)" -eq 0 ] || skip "all but what other users and containers see: that needs root"
touch "$tmp/rtrsctl"
rtrsctl=$tmp/rtrsctl
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
conf "auth-psk = $tmp/keys" "$tmp/disk"
chmod 600 "$tmp/disk"
doctor 2 "$file"
says "^bad  $file: key: auth-psk=$tmp/keys: Permission denied: user 65534 \(nobody\) may not read it, and it \
is of user 0 \(root\) and group 0 with mode 0600: chown it\$"
says "^bad  $file: image: disk=$tmp/disk: Permission denied: user 65534 \(nobody\) may not write it, and it \
is of user 0 \(root\) and group 0 with mode 0600"
# Root looks as the user of a program does, who cannot open its files another time.
chown 65534 "$tmp/disk"
mkdir -m 777 "$tmp/of-nobody"
SERVER_PREFIX="${as_user[*]}" RTRS_SERVER=$tmp/rtrs-server RUNTIME_DIRECTORY=$tmp/of-nobody \
	start_server --control "$tmp/of-nobody/ctl" "disk=$tmp/disk"
as_user=()
chown 0 "$tmp/disk"
doctor 2 --socket "$tmp/of-nobody/ctl"
says '^ok   rtrs-server disk: user: user 65534'
says '^bad  rtrs-server disk: image: .*: Permission denied: user 65534 \(nobody\) may not write it'
stop_server "$server_pid"

# A container that has a device of the kernel, and not its files.
unshare --mount mount -t tmpfs none /sys/class || skip "all but containers: no mounts here"
unshare --mount sh -c "mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/mlx5_9 &&
	exec '$rtrsctl' doctor" >"$tmp/doctor" 2>&1 || [ $? -eq 1 ]
cat "$tmp/doctor"
says '^warn rdma: the kernel has mlx5_9, and user space cannot open it: .*/dev/infiniband'
says '^warn rdma: /dev/infiniband/rdma_cm: No such file .* rdma_ucm'

# Units, by what systemctl says of them; and another user than root, who cannot look as theirs do.
etc=$(sed -n 's/^ExecStart=.*--config=\(.*\)\/rtrs-server.conf/\1/p' \
	"$top_builddir/contrib/systemd/rtrs-server.service")
mkdir -p "$etc" "$tmp/bin"
conf "auth-psk = $tmp/keys" /root/home.img
cat >"$tmp/bin/systemctl" <<END
#!/bin/sh
for name; do :; done
case "\$* " in
*' list-units '*) exec cat "$tmp/broken" ;;
*' rtrs-server.service ' | *' rtrs-nbd@gone.service ') exec cat "$tmp/unit" ;;
*) echo LoadState=not-found ;;
esac
END
: >"$tmp/broken"
chmod 755 "$tmp/bin/systemctl"
# unit_is LINE...: lines of systemctl show, beside or in the place of these.
unit_is() {
	printf '%s\n' "$@" LoadState=loaded User=daemon Group=daemon SupplementaryGroups= \
		ProtectHome=yes LimitMEMLOCK=8388608 LimitNOFILE=1024 NeedDaemonReload=no |
		awk -F= '!seen[$1]++' >"$tmp/unit"
	unshare --mount sh -c "mount -t tmpfs none /run && mkdir -p /run/systemd/system &&
		mount -t tmpfs none '$etc' && cp '$file' '$etc/rtrs-server.conf' &&
		PATH=$tmp/bin:\$PATH exec ${as_user[*]} '$rtrsctl' doctor" >"$tmp/doctor" 2>&1 ||
			true
	cat "$tmp/doctor"
}
of="$etc/rtrs-server.conf"
unit_is ActiveState=failed SubState=failed UnitFileState=enabled Result=exit-code
says "^bad  $of: unit: rtrs-server.service has failed \(exit-code\): journalctl -u rtrs-server.service"
says "^ok   $of: user: user 1 \(daemon\)"
says "^bad  $of: key: auth-psk=$tmp/keys: Permission denied: user 1 \(daemon\) may not read it"
says "^bad  $of: image: disk: /root/home.img: ProtectHome= of rtrs-server.service hides it"
says "^warn $of: memlock: at most 8 MiB may be locked: .*LimitMEMLOCK=infinity"
says "^ok   $of: files: at most 1024 may be open"
unit_is ActiveState=activating SubState=auto-restart UnitFileState=enabled
says "^bad  $of: unit: rtrs-server.service does not start, and tries again: journalctl -u"
# With the last line of the unit's process, where the journal has one.
cat >"$tmp/bin/journalctl" <<'END'
#!/bin/sh
case "$*" in
*--lines=1*\ _SYSTEMD_UNIT=rtrs-server.service) echo 'cannot listen on tcp://192.0.2.10:1234' ;;
*) exit 1 ;;
esac
END
chmod 755 "$tmp/bin/journalctl"
# A unit that was enabled before its file was there, or by a wrong name.
echo 'rtrs-nbd@gone.service loaded failed failed NBD gateway' >"$tmp/broken"
echo 'rtrs-server.service loaded failed failed RTRS/RNBD server' >>"$tmp/broken"
unit_is ActiveState=failed SubState=failed UnitFileState=enabled Result=exit-code
says '^bad  rtrs-nbd@gone.service: unit: rtrs-nbd@gone.service has failed \(exit-code\): journalctl'
[ "$(grep -c ': unit: rtrs-server.service' "$tmp/doctor")" -eq 1 ]
: >"$tmp/broken"
words='cannot listen on tcp://192.0.2.10:1234 \(journalctl -u rtrs-server.service\)$'
unit_is ActiveState=activating SubState=auto-restart UnitFileState=enabled
says "^bad  $of: unit: rtrs-server.service does not start, and tries again: $words"
unit_is ActiveState=failed SubState=failed UnitFileState=enabled Result=exit-code
says "^bad  $of: unit: rtrs-server.service has failed \(exit-code\): $words"
unit_is ActiveState=activating SubState=start UnitFileState=enabled NRestarts=3
says "^bad  $of: unit: rtrs-server.service is not up after 3 restarts: $words"
unit_is ActiveState=activating SubState=start UnitFileState=enabled NRestarts=0
says "^ok   $of: unit: rtrs-server.service is activating and enabled"
unit_is ActiveState=active SubState=running UnitFileState=enabled NRestarts=3
says "^ok   $of: unit: rtrs-server.service is active and enabled"
unit_is ActiveState=inactive SubState=dead UnitFileState=enabled
says "^warn $of: unit: rtrs-server.service is enabled and does not run: systemctl start"
unit_is ActiveState=inactive SubState=dead UnitFileState=disabled
says "^ok   $of: unit: rtrs-server.service is inactive and disabled"
# unit_is_with "FILE..." LINE...: the same beside drop-ins, which may be in a directory that systemd
# does not know yet.
unit_is_with() {
	local drop_ins=$1
	shift
	printf '%s\n' "$@" LoadState=loaded ActiveState=active SubState=running \
		UnitFileState=enabled User=daemon NeedDaemonReload=no >"$tmp/unit"
	unshare --mount sh -c "mount -t tmpfs none /run && cd / && mkdir -p /run/systemd/system &&
		for f in $drop_ins; do mkdir -p \${f%/*} && : >\$f; done
		mount -t tmpfs none '$etc' && cp '$file' '$etc/rtrs-server.conf' &&
		PATH=$tmp/bin:\$PATH exec '$rtrsctl' doctor" >"$tmp/doctor" 2>&1 || true
	cat "$tmp/doctor"
}
of_unit=/run/systemd/system/rtrs-server.service.d
three="$of_unit/a.conf $of_unit/b.conf $of_unit/c.txt"
unit_is_with "$three" "DropInPaths=$of_unit/a.conf /x/b.conf"
says "^warn $of: unit: systemd has not read $of_unit/b.conf: systemctl daemon-reload, then systemctl re"
[ "$(grep -c 'has not read' "$tmp/doctor")" -eq 1 ]
unit_is_with "$three" "DropInPaths=$of_unit/a.conf $of_unit/b.conf"
must_fail grep 'has not read' "$tmp/doctor"
unit_is_with "$of_unit/a.conf" NeedDaemonReload=no
says "^warn $of: unit: systemd has not read $of_unit/a.conf: "
# Of two with one name systemd takes that of the instance, and not that of the template.
of_gone=/run/systemd/system/rtrs-nbd@gone.service.d/o.conf
of_all=/run/systemd/system/rtrs-nbd@.service.d/o.conf
echo 'rtrs-nbd@gone.service loaded failed failed NBD gateway' >"$tmp/broken"
unit_is_with "$of_gone $of_all" "DropInPaths=$of_gone"
must_fail grep 'has not read' "$tmp/doctor"
unit_is_with "$of_gone $of_all" "DropInPaths=$of_all"
says "^warn rtrs-nbd@gone.service: unit: systemd has not read $of_gone: "
unit_is_with "$of_gone $of_all ${of_all%/*}/p.conf" "DropInPaths=$of_gone"
says "^warn rtrs-nbd@gone.service: unit: systemd has not read ${of_all%/*}/p.conf: "
: >"$tmp/broken"
unit_is ActiveState=inactive LoadState=masked
says "^warn $of: unit: rtrs-server.service is masked and cannot start: systemctl unmask"
unit_is ActiveState=inactive SubState=dead UnitFileState=disabled User=none-such-user
says "^bad  $of: user: there is no user none-such-user, whom rtrs-server.service has"
unit_is ActiveState=inactive SubState=dead UnitFileState=disabled User=1 Group=1
says "^ok   $of: user: user 1 \(daemon\)"
unit_is ActiveState=inactive SubState=dead UnitFileState=disabled User=54321
says "^bad  $of: user: there is no user 54321, whom rtrs-server.service has"
conf 'auth-psk = own-keys' /root/home.img
(cd "$tmp/work" &&
	unit_is User=root Group=root ActiveState=inactive SubState=dead UnitFileState=disabled)
says "^bad  $of: key: auth-psk=own-keys: No such file"
says "^bad  $of: configuration: .*own-keys.*No such file"
(cd / && unit_is User=root Group=root ActiveState=inactive WorkingDirectory="!$tmp/work")
says "^ok   $of: key: auth-psk=own-keys: 1 key"
# One that nobody can enter, that of a user who has no directory, and one that may be missing.
unit_is User=root Group=root ActiveState=inactive WorkingDirectory="$tmp/disk"
says "^bad  $of: directory: WorkingDirectory=$tmp/disk of rtrs-server.service: $tmp/disk: Not a dir"
unit_is User=nobody Group=root ActiveState=inactive WorkingDirectory='~'
says "^bad  $of: directory: WorkingDirectory=~ of rtrs-server.service: /nonexistent: No such file"
unit_is User=root Group=root ActiveState=inactive WorkingDirectory="!$tmp/none"
must_fail grep ': directory: ' "$tmp/doctor"
chmod 700 "$tmp/work"
conf "state-dir = $tmp/work" /root/home.img
unit_is ActiveState=inactive
says "^bad  $of: directory: state-dir=$tmp/work: Permission denied: user 1 .daemon. may not write"
# Directories that the unit keeps for reading: all but its own with strict, /etc with full.
conf "state-dir = /var/lib/rtrs/state
metrics-file = $tmp/work/rtrs.prom" /root/home.img
closed="rtrs-server.service lets nobody write to it: make it, and ReadWritePaths=$tmp/work/ in"
unit_is ActiveState=inactive ProtectSystem=strict StateDirectory='other rtrs'
says "^bad  $of: directory: metrics-file=$tmp/work/: ProtectSystem=strict of $closed"
must_fail grep 'state-dir=.*ProtectSystem' "$tmp/doctor"
unit_is ActiveState=inactive ProtectSystem=strict ReadWritePaths="-/srv +$tmp/work" \
	StateDirectory=rtr
must_fail grep 'metrics-file=.*ProtectSystem' "$tmp/doctor"
says "^bad  $of: directory: state-dir=/var/lib/rtrs/state: ProtectSystem=strict "
for opened in "ReadWritePaths=/srv /" "ReadWritePaths=$tmp//" BindPaths=/a:/b; do
	unit_is ActiveState=inactive ProtectSystem=strict "$opened"
	must_fail grep 'metrics-file=.*ProtectSystem' "$tmp/doctor"
done
for dir in /run/rtrs /var/cache/rtrs /var/log/rtrs /dev/shm; do
	conf "metrics-file = $dir/rtrs.prom" /root/home.img
	unit_is ActiveState=inactive ProtectSystem=strict
	grep 'metrics-file=.*ProtectSystem' "$tmp/doctor" || [ $dir = /dev/shm ]
	unit_is ActiveState=inactive ProtectSystem=strict RuntimeDirectory=rtrs \
		CacheDirectory=rtrs LogsDirectory=rtrs
	must_fail grep 'metrics-file=.*ProtectSystem' "$tmp/doctor"
done
conf "state-dir = /var/lib/rtrs/state
metrics-file = $tmp/work/rtrs.prom" /root/home.img
unit_is ActiveState=inactive ProtectSystem=full
must_fail grep ': ProtectSystem=' "$tmp/doctor"
conf "state-dir = /etc/rtrs/state
metrics-file = /usr/lib/rtrs.prom" /root/home.img
unit_is ActiveState=inactive ProtectSystem=full
says "^bad  $of: directory: state-dir=/etc/rtrs/state: ProtectSystem=full "
unit_is ActiveState=inactive ProtectSystem=yes
must_fail grep 'state-dir=.*ProtectSystem' "$tmp/doctor"
says "^bad  $of: directory: metrics-file=/usr/lib/: ProtectSystem=yes "
conf "auth-psk = $tmp/keys" /root/home.img
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
# make distcheck may configure a directory below one that is for root alone.
if "${as_user[@]}" test -d "${of%/*}"; then
	unit_is ActiveState=inactive SubState=dead UnitFileState=disabled
	words='only root can look as user 1 \(daemon\) does: run rtrsctl doctor as root'
	says "^warn $of: key: .*: $words"
	must_fail grep ': program: ' "$tmp/doctor"
	unit_is ActiveState=active SubState=running UnitFileState=enabled
	says "^warn $of: program: rtrs-server.service runs, and answers root and its own user alone: "
fi
as_user=()

# Ends with different MTUs: the one with the larger one knows.
wires_up
in_client ip link set net1 mtu 1400
SERVER_PREFIX=$SERVER_NET start_server --listen tcp://10.77.1.2:1234 \
	--listen tcp://10.77.2.2:1234 --allow 10.77.0.0/16 "disk=$tmp/disk"
GATEWAY_PREFIX=$CLIENT_NET start_gateway 10.77.1.2:1234 path=10.77.2.2:1234 export=disk \
	control="$tmp/gateway.ctl"
both_up() { [ "$("$rtrsctl" --json --socket "$tmp/gateway.ctl" check | grep -c '"paths_up":2')" = 1 ]; }
wait_until "both paths" both_up
read -r -a as_user <<<"$SERVER_NET"
doctor 1 --server
says '^warn rtrs-server disk: mtu: .*@10.77.1.2:1234: the other end takes packets of 1400 bytes only, and net1 has an MTU of 1500'
says '^ok   rtrs-server disk: mtu: .*@10.77.2.2:1234: packets of 1500 bytes, as net2 has them'
read -r -a as_user <<<"$CLIENT_NET"
doctor 0 --socket "$tmp/gateway.ctl"
says '^ok   rtrs-nbd disk: mtu: 10.77.1.2:1234: packets of 1400 bytes, as net1 has them'
# A path that is lost is bad, with its reason.
stop_server "$server_pid"
wait_line "$gateway_log" '10\.77\.1\.2.*refused'
doctor 2 --socket "$tmp/gateway.ctl"
says '^bad  rtrs-nbd disk: path: 10.77.1.2:1234 is not up \((back-off|connecting)\): .*refused'

# Certificates that are good for some days, are not valid yet, and have ended.
as_user=()
. "$top_srcdir/tests/pki.sh"
words=('cn = "server"' tls_www_server signing_key)
on_day() { printf '%s = "%s"\n' "$1" "$(date -d "$2 days" '+%F %T')"; }
authority "$tmp/pki" "$(on_day activation_date -900)" 'expiration_days = 2000'
certificate "$tmp/pki" server "${words[@]}" 'expiration_days = 5'
conf "tls-certificates = $tmp/pki" "$tmp/disk"
doctor 1 "$file"
says "^warn $file: certificates: tls-certificates=$tmp/pki: server-cert.pem ends on "
certificate "$tmp/pki" server "${words[@]}" "$(on_day activation_date 3)" 'expiration_days = 90'
doctor 2 "$file"
says "^bad  $file: certificates: .*: server-cert.pem is not valid before .*: the clock is wrong, or"
certificate "$tmp/pki" server "${words[@]}" "$(on_day activation_date -9)" \
	"$(on_day expiration_date -2)"
doctor 2 "$file"
says "^bad  $file: certificates: .*: server-cert.pem has ended on .*: put a new one"
