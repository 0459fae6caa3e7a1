#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which programs rtrsctl finds: those of this user with a control socket by default, in systemd's
# other directories, too, by any name where our programs have their sockets; nobody else is asked
# who has a socket there.  Sockets of the dead go, and only these.
. "$(dirname "$0")/own-namespace.sh" --mount
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

# /run for root, as it is after a boot; else $XDG_RUNTIME_DIR.
if [ "$(id -u)" -eq 0 ]; then
	[ "$IN_NAMESPACE" = yes ] || skip "no mount namespace"
	mount -t tmpfs -o mode=755 none /run || skip "cannot mount over /run"
	parent=/run
else
	parent=$tmp/run
	mkdir "$parent"
	export XDG_RUNTIME_DIR=$parent
fi
unset RUNTIME_DIRECTORY
dir=$parent/nbdkit-rtrs
rtrsctl=$top_builddir/rtrsctl

# dead_socket PATH...: what a process that was killed leaves.
dead_socket() {
	/usr/bin/python3 -c '
import socket, sys
for path in sys.argv[1:]:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(path)' "$@"
}

# The next start takes the dead away.
mkdir -p "$dir"
dead_socket "$dir/server-4194305.sock" "$dir/nbdkit-4194305.sock" \
	"$dir/rtrs-nbd-4194305.sock" "$dir/other.sock" "$dir/server-x.sock" "$dir/server-1.socks"
touch "$dir/server-1.sock"
truncate -s 8M "$tmp/disk"
mkdir "$parent/service" && chmod 755 "$parent/service"
RUNTIME_DIRECTORY=$parent/service start_server "disk=$tmp/disk"
[ -S "$parent/service/server-$server_pid.sock" ]
[ -S "$dir/server-4194305.sock" ] || fail "a server has looked into another directory than its own"
start_nbdkit "127.0.0.1:$server_port" export=disk
wait_until "the control socket" test -S "$dir/$NBD_FRONT-$nbdkit_pid.sock"
ls "$dir"
left=("$NBD_FRONT-$nbdkit_pid.sock" other.sock server-{1.sock,1.socks,x.sock})
[ "$(cd "$dir" && printf '%s\n' *)" = "$(printf '%s\n' "${left[@]}" | sort)" ] ||
	fail "what is left is not what is to be left"

# And so does rtrsctl, where the owner is its user.
dead_socket "$dir/server-4194305.sock" "$dir/server-4194306.sock" \
	"$parent/service/server-4194307.sock"
[ "$parent" != /run ] || chown 4242 "$dir/server-4194306.sock" 2>/dev/null ||
	rm "$dir/server-4194306.sock"
owned=$(find "$dir" ! -user "$(id -un)" -name 'server-*' | wc -l)

# An NBD server has its socket in the directory; a stranger has one in a directory for all.
start_nbdkit "127.0.0.1:$server_port" export=disk mode=ro control=none
nbd=$nbdkit_pid
mv "$sock" "$dir/disk.sock"
mkdir -m 1777 "$parent/lock"
chmod 1777 "$parent/lock"
RUNTIME_DIRECTORY=$parent/lock start_server "other=$tmp/disk,readonly" --no-lock
[ -S "$parent/lock/server-$server_pid.sock" ]

# Another one has it in a directory of his own; only root can give one away.
mkdir -m 755 "$parent/stranger"
if chown 4242 "$parent/stranger" 2>/dev/null; then
	RUNTIME_DIRECTORY=$parent/stranger start_server "third=$tmp/disk,readonly" --no-lock
	[ -S "$parent/stranger/server-$server_pid.sock" ]
fi

"$rtrsctl" list >"$tmp/list"
cat "$tmp/list"
[ "$(grep -c '^rtrs-server ' "$tmp/list")" -eq 1 ] || fail "not the one server"
[ "$(grep -c -E '^(nbdkit-rtrs-plugin|rtrs-nbd) ' "$tmp/list")" -eq 1 ] ||
	fail "not the one gateway"
[ "$(grep -c 'export' "$tmp/list")" -eq 1 ] || fail "not the one export"
[ "$(find "$parent" -name 'server-419430*' | wc -l)" -eq "$owned" ] ||
	fail "dead sockets are left, or another user's is not"
[ -S "$dir/disk.sock" ]
[ -S "$dir/other.sock" ]
[ -f "$dir/server-1.sock" ]

# What only one of them has goes there; a question to both.
[ "$("$rtrsctl" policy)" = "policy  min-inflight" ]
[ "$("$rtrsctl" log-level)" = "log_level  info" ]
"$rtrsctl" show >"$tmp/shown"
[ "$(grep -c -E '^ +state +connected$' "$tmp/shown")" -ge 2 ]
stop_process "$nbd"

# Units have directories of their own, below one of ours, too, and sockets with other names; for
# root the directories may belong to the service's user.
mkdir "$parent/rtrs" "$parent/rtrs/disk0" "$parent/rtrs-unit" "$parent/rtrs-open"
chmod 755 "$parent/rtrs" "$parent/rtrs/disk0" "$parent/rtrs-unit"
chmod 777 "$parent/rtrs-open"
chown 4242 "$parent/rtrs-unit" 2>/dev/null || true
n=0
for path in "$dir/control" "$parent/rtrs/disk0/ctl" "$parent/rtrs-unit/x.sock" \
	"$parent/service/server.sock" "$parent/rtrs-open/y.sock"; do
	start_server --control "$path" --name "unit$((n++))" --no-lock "x=$tmp/disk,readonly"
done
# Strangers are not asked: a socket of all, and one with another name in the directory of others,
# where a service's user may lead with a link.
ln -s "$parent/service" "$parent/rtrs-unit/link"
cat >"$tmp/stranger.py" <<'END'
import os, select, socket, sys
sockets = []
for path, mode in ((sys.argv[1], 0o666), (sys.argv[2], 0o600)):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, mode)
    s.listen(4)
    sockets.append(s)
# A program of another kind with a private socket in our directory is asked, and answers nonsense.
other = socket.socket(socket.AF_UNIX)
other.bind(sys.argv[3])
os.chmod(sys.argv[3], 0o600)
other.listen(4)
print("listens", flush=True)
while True:
    for s in select.select(sockets + [other], [], [])[0]:
        if s is not other:
            print("a stranger was asked", flush=True)
            sys.exit(1)
        client = s.accept()[0]
        client.recv(4096)
        client.sendall(b'{"ok":true,"program":5}\n')
        client.close()
END
/usr/bin/python3 "$tmp/stranger.py" "$dir/public.sock" "$parent/service/private.sock" \
	"$dir/nonsense.sock" >"$tmp/stranger.out" &
stranger=$!
cleanup_fn kill_process $stranger
wait_line "$tmp/stranger.out" listens
"$rtrsctl" --server list >"$tmp/list"
cat "$tmp/list"
[ "$(sed -n 's/^rtrs-server //p' "$tmp/list" | sort | tr '\n' ' ')" = "disk unit0 unit1 unit2 " ] ||
	fail "not the four servers"
"$rtrsctl" list >"$tmp/list"
cat "$tmp/list"
[ "$(grep -c '^[^ ]' "$tmp/list")" -eq 5 ] || fail "not the four servers and the gateway"
[ "$(cat "$tmp/stranger.out")" = listens ] || fail "a stranger was asked"
kill -0 $stranger

# What is no program of ours says nothing that rtrsctl would wait for.
start_nbdkit "127.0.0.1:$server_port" control=none
expect_failure 1 "$sock: another kind of program listens there" "$rtrsctl" --socket "$sock" list
