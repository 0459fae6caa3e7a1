#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A server is killed, told to end, or stopped and killed while the storage has a direct write of it.
# The next one does not serve the export before that write has ended: it says whom it waits for, and
# what is written and flushed then is not overwritten.  Without locks the claim of the block device
# does the same, and locks that a stranger has on the device do not change it.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires nbdsh --version

# Requests of a block device that is a file of our own file system: direct ones outlive who sent
# them.
truncate -s 1M "$tmp/disk"
held_fs "$tmp/disk"
loop_device "$tmp/mnt/disk" --direct-io=on

client() {
	steps "$uri" "$tmp/held.sock" <<'END'
holder = first = None

def said():
    return holder.recv(1).decode()

def hold():
    """A write is in the storage, which goes on without it."""
    global holder, first
    holder = socket.socket(socket.AF_UNIX)
    holder.connect(sys.argv[2])
    assert said() == "H"
    first = h.aio_pwrite(b"old".ljust(4096, b"1"), 0)
    h.poll(0)
    assert said() == "W"
    holder.send(b"K")
    return said()

def release():
    holder.send(b"G")
    return said()

def first_ends():
    while not h.aio_command_completed(first):
        h.poll(-1)

def write():
    h.pwrite(b"new".ljust(4096, b"2"), 0)
    h.flush()

def read():
    return bytes(h.pread(512, 0)[:3]).decode()
END
}

# start_waiting OPTION...: a server that cannot be ready yet.
start_waiting() {
	local preload

	preload=$(server_preload)
	server_log=$tmp/waiting$((++started)).log
	# shellcheck disable=SC2046 # words
	${preload:+env LD_PRELOAD=$preload} $(wrapper) "$RTRS_SERVER" \
		${VALGRIND_TESTS:+--seccomp=off} "$@" </dev/null >"$server_log" 2>&1 &
	server_pid=$!
	cleanup_fn stop_server "$server_pid"
}

# A user who may only read the device has it locked, in both ways that there are.
locked_by_stranger() {
	local name=$tmp/dev word=""

	mknod -m 644 "$name" b "$((0x$(stat -c %t "$loop")))" "$((0x$(stat -c %T "$loop")))"
	chmod 755 "$tmp"
	mkfifo "$tmp/stranger"
	setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 -c '
import fcntl, struct, sys, time
f = open(sys.argv[1], "rb")
fcntl.flock(f, fcntl.LOCK_SH)
fcntl.fcntl(f, 37, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0))	# F_OFD_SETLK
print("locked", flush=True)
time.sleep(100000)' "$name" >"$tmp/stranger" &
	cleanup_fn kill_process $!
	read -r -t "$TIMEOUT_S" word <"$tmp/stranger" || true
	[ "$word" = locked ]
}

# PROC_PID_INIT_INO of Linux.
[ "$(stat -L -c %i /proc/self/ns/pid)" = $((0xeffffffc)) ] && first_namespace=yes ||
	first_namespace=no
ways="kill term stop no-lock stranger"
# There, the second lock of a stranger may be that of a process that the namespace does not show.
[ "$first_namespace" = yes ] || ways=${ways% stranger}
for how in $ways; do
	lock='' dev=$loop force=''
	case $how in
	stranger)
		# The claim of the device would do the work of the lock.
		invalidate=always dev=$tmp/dev force=,force
		locked_by_stranger
		;;
	kill) invalidate=always ;;
	term) invalidate=copy ;;
	stop) invalidate=never ;;
	no-lock) invalidate=never lock=--no-lock ;;
	esac
	# shellcheck disable=SC2086 # a word or none
	start_server $lock "--invalidate=$invalidate" "disk=$dev,direct$force"
	first_pid=$server_pid port=$server_port waits="is locked by process $server_pid"
	# In another PID namespace than the first one, /proc/locks leaves out the lock of a process
	# that has ended.
	[ "$first_namespace" = yes ] || waits="is locked by (process $server_pid|another process)"
	[ -z "$lock" ] || waits='is in use by an unknown process or part of the kernel'
	start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$((4 * TIMEOUT_S))"
	client
	ask hold K
	case $how in
	kill | no-lock | stranger) kill_process "$first_pid" ;;
	term) kill -TERM "$first_pid" ;;
	stop) stop_all_threads "$first_pid" ;;
	esac
	# shellcheck disable=SC2086
	start_waiting $lock "--invalidate=$invalidate" \
		--listen "tcp://127.0.0.1:$port" "disk=$dev,direct$force"
	wait_line "$server_log" "'$dev' $waits"
	[ $how != stop ] || kill_process "$first_pid"
	must_fail grep -q listening "$server_log"
	ask release D
	wait_line "$server_log" '^listening on '
	[ $how != term ] || expect_exit "$first_pid" 0
	[ $how != term ] || stopped="$stopped$first_pid "
	ask first_ends ok
	ask write ok
	ask read new
	steps_end
	head -c 3 "$tmp/disk" | grep -q -x new ||
		fail "$how: the older write came over the newer one"
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
done
[ "$first_namespace" = yes ] ||
	skip "all passed but a stranger's locks: not in the first PID namespace"
