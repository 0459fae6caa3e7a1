#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is locked by another server, or by a process that may write, is waited for until
# --lock-timeout: then the server ends with status 1 and names the process.  A user who may only
# read the image, or open the directory of a socket, keeps no server from it.
. ./tests/functions.sh
requires_server
requires flock --version

chmod 755 "$tmp"
truncate -s 1M "$tmp/disk"
chmod 644 "$tmp/disk"

program=$RTRS_SERVER as=()
# refused REGEX OPTION...: a server that waits for a second, says for whom, and gives up.
refused() {
	local regex=$1 status=0
	shift
	# shellcheck disable=SC2046 # words
	timeout "$TIMEOUT_S" "${as[@]}" $(wrapper) "$program" --strict --listen tcp://127.0.0.1:0 \
		--control none --lock-timeout 1 "$@" \
		</dev/null >"$tmp/refused.log" 2>&1 || status=$?
	cat "$tmp/refused.log"
	[ $status -eq 1 ] || fail "status $status instead of 1"
	grep -E "export 'd': '$tmp/(disk|second)' is locked by $regex: waited 1 s \(--lock-timeout\)" "$tmp/refused.log"
	grep -E "'$tmp/(disk|second)' is locked by $regex: waited [0-9]+ s, giving up after 1 s" \
		"$tmp/refused.log"
}

# ---- of those who may write ----

lock "$tmp/disk"
refused 'process [0-9]+ \(sleep\)' "d=$tmp/disk"
refused 'process [0-9]+ \(sleep\)' "d=$tmp/disk,readonly"
unlock

start_server "d=$tmp/disk"
for dir in "$RUNTIME_DIRECTORY" "$tmp/other"; do
	refused "process $server_pid \\(.*\\)" --state-dir "$dir" "d=$tmp/disk"
	refused "process $server_pid \\(.*\\)" --state-dir "$dir" "d=$tmp/disk,readonly"
done
stop_server "$server_pid"
ls "$RUNTIME_DIRECTORY" "$tmp/other"
must_fail ls "$RUNTIME_DIRECTORY"/*.lock
must_fail ls "$tmp/other"/*.lock

# ---- of those who may not ----

requires_root
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
requires "${nobody[@]}" true

# /proc hides processes of others: they live all the same, and nobody knows what they may do.
chmod 666 "$tmp/disk"
cp "$RTRS_SERVER" "$tmp/rtrs-server"
mkdir "$tmp/user"
chown 65533 "$tmp/user"
# shellcheck disable=SC2016 # for that shell
hide='mount -t proc -o hidepid=$0 proc /proc && exec setpriv --reuid 65533 --regid 65533 --clear-groups "$@"'
for level in 1 2; do
	if ! unshare --mount sh -c "$hide" $level true; then
		not_run_here hidepid "no /proc with hidepid=$level"
		break
	fi
	program=$tmp/rtrs-server as=(unshare --mount sh -c "$hide" "$level")
	lock "$tmp/disk" "${nobody[@]}"
	refused "process $locker" --state-dir "$tmp/user" "d=$tmp/disk"
	unlock
	# Who asked for the lock has ended, and left it to a process that is not to be seen.
	coproc heir { exec "${nobody[@]}" sh -c \
		'flock 9; echo locked; read -r _' 9<"$tmp/disk"; }
	heir_pid=$heir_PID heir_in=${heir[1]}
	read -r -t "$TIMEOUT_S" word <&"${heir[0]}"
	[ "$word" = locked ]
	refused 'process [0-9]+, which has ended( and whose last requests are still in the storage)?' \
		--state-dir "$tmp/user" "d=$tmp/disk"
	eval "exec $heir_in>&-"
	wait "$heir_pid" || true
done
# A root that may not look into processes of other users (whose group is not that of gid=)
# shellcheck disable=SC2016 # for that shell
drop='mount -t proc -o hidepid=1,gid=65533 proc /proc && exec setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace \
	"$@"'
program=$RTRS_SERVER as=(unshare --mount sh -c "$drop" sh)
if "${as[@]}" true; then
	lock "$tmp/disk" "${nobody[@]}"
	refused "process $locker" "d=$tmp/disk"
	unlock
fi
# A server in a PID namespace of its own, as in a container: /proc/locks leaves out what processes
# outside of it have locked, and a lock whose asker has ended.  The first ones may be a writer's.
chmod 644 "$tmp/disk"
as=(unshare --mount-proc --pid --fork --kill-child)
if "${as[@]}" true; then
	lock "$tmp/disk" "${nobody[@]}"
	refused 'another process, which this PID namespace \(container\) does not show' \
		"d=$tmp/disk"
	unlock
	# A process of it keeps no server from the image, as on a machine.
	# shellcheck disable=SC2016 # for that shell
	"${as[@]}" sh -c 'setpriv --reuid 65534 --regid 65534 --clear-groups \
			sh -c "flock 9; sleep 1000 &" 9<"$0" >/dev/null; exec timeout 1000 "$@"' \
		"$tmp/disk" "$RTRS_SERVER" --listen "unix:$tmp/inner.sock" --control none \
		--lock-timeout 1 "d=$tmp/disk" </dev/null >"$tmp/inner.log" 2>&1 &
	inner=$!
	cleanup_fn kill_process $inner
	wait_line "$tmp/inner.log" \
		"'$tmp/disk' is locked by process [0-9]+ \(sleep\) of user 65534, which is no"
	wait_line "$tmp/inner.log" 'ready, version'
	kill_process $inner
else
	not_run_here "PID namespace" "no namespace of its own"
fi
as=()

mkdir -m 755 "$tmp/socks"
for what in "$tmp/disk" "$tmp/socks"; do
	lock "$what" "${nobody[@]}"
done
start_server --listen "unix:$tmp/socks/s" "d=$tmp/disk"
grep -E "'$tmp/disk' is locked by process [0-9]+ \(sleep\) of user 65534, which is not a writing server: ignored" \
	"$server_log"
# Servers keep each other away all the same.
refused "process [0-9]+ \\(.*\\)" "d=$tmp/disk"
refused "process [0-9]+ \\(.*\\)" --state-dir "$tmp/other" "d=$tmp/disk"
stop_server "$server_pid"

# Who keeps the byte of servers from them, and nothing else, does not hide them from each other.
truncate -s 1M "$tmp/second"
chmod 644 "$tmp/second"
cat >"$tmp/byte.py" <<'END'
import fcntl, struct, sys
f = open(sys.argv[1], "rb")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0x7274727300000000, 1, 0))
print("locked", flush=True)
sys.stdin.read()
END
coproc reader { exec "${nobody[@]}" python3 "$tmp/byte.py" "$tmp/second"; }
reader_pid=$reader_PID reader_in=${reader[1]}
read -r -t "$TIMEOUT_S" word <&"${reader[0]}"
[ "$word" = locked ]
start_server "d=$tmp/second"
grep -E "'$tmp/second' is locked against writers by a process that reads it: ignored" "$server_log"
refused "process $server_pid \\(.*\\)" --state-dir "$tmp/other" "d=$tmp/second"
# The same process has the other lock, too, when a server starts: this one is not seen, also when
# that has let go.
stop_server "$server_pid"
lock "$tmp/second" "${nobody[@]}"
start_server "d=$tmp/second"
unlock
eval "exec $reader_in>&-"
wait "$reader_pid"
start_server --state-dir "$tmp/other" "d=$tmp/second"
must_fail grep locked "$server_log"
