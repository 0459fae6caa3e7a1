#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A block device that something of this machine uses is not exported for writing: it is refused, or
# waited for where nobody can say by whom it is used.  While it is exported for writing nobody else
# can take it.
. ./tests/functions.sh
requires_server; requires_root
requires mke2fs -V

# A claim like that of mount, mkfs and LVM.
cat >"$tmp/claim.py" <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)
if len(sys.argv) > 2:
    print("claimed", flush=True)
    sys.stdin.read()
END
claim() { python3 "$tmp/claim.py" "$@"; }

refused() { local regex=$1; shift; expect_failure 1 "$regex" "$RTRS_SERVER" \
	--strict --listen tcp://127.0.0.1:0 "$@"; }
# It waits for a second, and then it says so and ends.
gives_up() {
	local status=0
	timeout "$TIMEOUT_S" "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 \
		--lock-timeout 1 "disk=$loop" \
		>"$tmp/gives-up.log" 2>&1 || status=$?
	[ $status -eq 1 ] || fail "status $status instead of 1"
	grep -E "export 'disk': '$loop' is in use by .*: waited 1 s \(--lock-timeout\)" \
		"$tmp/gives-up.log"
}
serves() { start_server "$@"; stop_process "$server_pid"; }
mnt="$tmp/a mount"
unmount_rest() { ! mountpoint -q "$mnt" || umount "$mnt"; }

truncate -s 64M "$tmp/image"
loop=$(losetup -f --show "$tmp/image") || skip "no loop device"
name=${loop##*/}
cleanup_fn losetup -d "$loop"
mkdir "$mnt"
cleanup_fn unmount_rest
ln -s "$loop" "$tmp/link"

# What is exported for writing cannot be claimed; exported several times it is claimed once.
serves "disk=$loop"
start_server "disk=$loop" "again=$loop,direct" "read=$loop,readonly"
must_fail claim "$loop"
stop_process "$server_pid"
claim "$loop"
for others in "disk=$loop,readonly" "disk=$loop,force"; do
	start_server "$others"
	claim "$loop"
	stop_process "$server_pid"
done

# mounted
mke2fs -q "$loop"
mount "$loop" "$mnt"
refused "'$loop' is mounted at '$mnt': .*,readonly.*,force" "disk=$loop"
refused "'$tmp/link' is mounted at '$mnt'" "disk=$tmp/link,direct"
refused "'$loop' is mounted at" --no-lock "read=$loop,readonly" "disk=$loop"
serves "disk=$loop,readonly"
serves "disk=$loop,force"
umount "$mnt"
serves "disk=$tmp/link"

# A file system that only calls itself so, as any user may call a FUSE file system.
mount -t tmpfs "$loop" "$mnt"
grep " - tmpfs $loop " /proc/self/mountinfo
serves "disk=$loop"
umount "$mnt"

# btrfs has numbers that are no device's: the source of its mounts counts where it is a node of
# /dev.  What is mounted below /dev is not entered, because it may not answer.
cat >"$tmp/btrfs.sh" <<'END'
set -e
tmp=$1 source=$2 loop=$3
shift 3
mount -t tmpfs none "$tmp/dev"
mkdir "$tmp/dev/mapper" "$tmp/dev/shm"
cp -a /dev/null "$loop" "$tmp/dev"
ln -s "../${loop##*/}" "$tmp/dev/mapper/vg-disk"
mount -t tmpfs none "$tmp/dev/shm"
cp -a "$loop" "$tmp/dev/shm/disk"
mount --rbind "$tmp/dev" /dev
echo "36 35 0:99 / /srv rw - btrfs $source rw" >"$tmp/mountinfo"
mount --bind "$tmp/mountinfo" /proc/$$/mountinfo
exec "$@"
END
mkdir "$tmp/dev"
if unshare --mount sh "$tmp/btrfs.sh" "$tmp" none "$loop" true; then
	for source in "$loop" /dev/mapper/vg-disk; do
		expect_failure 1 "'$loop' is mounted at '/srv'" unshare --mount sh "$tmp/btrfs.sh" \
			"$tmp" "$source" \
			"$loop" "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 "disk=$loop"
	done
	SERVER_PREFIX="unshare --mount sh $tmp/btrfs.sh $tmp /dev/shm/disk $loop"
	serves "disk=$loop"
	SERVER_PREFIX=
else
	not_run_here mountinfo "no mount over it"
fi

# A mount that only another mount namespace has: nobody can say where.
if unshare --mount true; then
	coproc elsewhere { unshare --mount sh -c "mount $loop '$mnt' && echo mounted && read _"; }
	elsewhere_pid=$elsewhere_PID elsewhere_in=${elsewhere[1]}
	read -r -t "$TIMEOUT_S" word <&"${elsewhere[0]}"
	[ "$word" = mounted ]
	gives_up
	"$RTRS_SERVER" --listen tcp://127.0.0.1:0 "disk=$loop" >"$tmp/waits.log" 2>&1 &
	waits=$!
	wait_line "$tmp/waits.log" \
		"'$loop' is in use by an unknown process or part of the kernel"
	must_fail grep listening "$tmp/waits.log"
	eval "exec $elsewhere_in>&-"
	wait "$elsewhere_pid" || true
	wait_line "$tmp/waits.log" "'$loop' is claimed by this server now"
	wait_line "$tmp/waits.log" '^listening on '
	stop_process $waits
fi

# A program that has claimed it
coproc other { claim "$loop" hold; }
other_pid=$other_PID other_in=${other[1]}
read -r -t "$TIMEOUT_S" word <&"${other[0]}"
[ "$word" = claimed ]
"$RTRS_SERVER" --listen tcp://127.0.0.1:0 "disk=$loop" >"$tmp/waits2.log" 2>&1 &
waits=$!
wait_line "$tmp/waits2.log" \
	"'$loop' is in use by process [0-9]+ \(python3\): waited 1 s"
eval "exec $other_in>&-"
wait "$other_pid" || true
wait_line "$tmp/waits2.log" '^listening on '
stop_process $waits

# swap
mkswap "$loop" >/dev/null
if swapon "$loop" 2>"$tmp/swapon.err"; then
	refused "'$loop' is in use as swap" "disk=$loop"
	swapoff "$loop"
else
	not_run_here swapon "$(cat "$tmp/swapon.err")"
fi
serves "disk=$loop"

# What is made of it: LVM, md, device-mapper.
major=$(printf %d "0x$(stat -L -c %t "$loop")") minor=$(printf %d "0x$(stat -L -c %T "$loop")")
mkdir -p "$tmp/sys/$major:$minor/holders/dm-7/dm"
echo vg-root >"$tmp/sys/$major:$minor/holders/dm-7/dm/name"
if unshare --mount mount --bind "$tmp/sys" /sys/dev/block; then
	expect_failure 1 "'$loop' is in use by dm-7 \(vg-root\): " unshare --mount sh -c \
		"mount --bind '$tmp/sys' /sys/dev/block
		exec '$RTRS_SERVER' --strict --listen tcp://127.0.0.1:0 disk=$loop"
fi

# Partitions and their disk
if addpart "$loop" 1 2048 32768 && [ -b "${loop}p1" ]; then
	cleanup_fn delpart "$loop" 1
	addpart "$loop" 2 40960 32768
	cleanup_fn delpart "$loop" 2
	mke2fs -q "${loop}p1"
	mount "${loop}p1" "$mnt"
	refused "'$loop' has the partition ${name}p1, which is mounted at '$mnt'" "disk=$loop"
	refused "'${loop}p1' is mounted at '$mnt'" "disk=${loop}p1"
	serves "disk=${loop}p2"
	umount "$mnt"
	# A process in a mount namespace of its own may have a copy of the mount, and ends.
	wait_until "the end of all mounts of $loop" mke2fs -q -F "$loop"
	mount "$loop" "$mnt"
	refused "'${loop}p2' is a partition of $name, which is mounted at '$mnt'" "disk=${loop}p2"
	umount "$mnt"
	refused "export 'b': '${loop}p1' is on the same disk as '$loop', which the export 'a'" \
		"a=$loop" "b=${loop}p1"
	refused "export 'b': '$loop' is on the same disk as '${loop}p2', which the export 'a'" \
		"a=${loop}p2" "b=$loop"
	serves "a=${loop}p1" "b=${loop}p2" "c=$loop,readonly"
	serves "a=${loop}p1" "b=$loop,force"
else
	not_run_here addpart "no partition"
fi

# Who writes and claims nothing is warned of.
start_server "image=$tmp/image"
wait_line "$server_log" "warning: image: '$tmp/image' is the storage of the loop device $name"
stop_process "$server_pid"
truncate -s 1M "$tmp/file"
start_server "file=$tmp/file"
stop_process "$server_pid"
must_fail grep "destroy" "$server_log"
start_server "file=$tmp/file" 8<"$tmp/file"
stop_process "$server_pid"
must_fail grep "destroy" "$server_log"
hold_open "$tmp/file"
start_server "file=$tmp/file"
wait_line "$server_log" \
	"warning: file: '$tmp/file' is open for writing in process $holder \(sleep\)"
stop_process "$server_pid"
start_server "file=$tmp/file,readonly"
stop_process "$server_pid"
must_fail grep "destroy" "$server_log"
# In a namespace of PIDs with the /proc of another one, where the server has another number: it
# does not warn of itself.  The warnings are in the order of the paths.
truncate -s 1M "$tmp/aaa"
if unshare --pid --fork true; then
	unshare --pid --fork --kill-child "$RTRS_SERVER" --listen "unix:$tmp/inner" --control none \
		--state-dir "$tmp/inner-state" "aaa=$tmp/aaa" "file=$tmp/file" \
		</dev/null >"$tmp/inner.log" 2>&1 &
	inner_pid=$!
	cleanup_fn kill_process "$inner_pid"
	wait_line "$tmp/inner.log" \
		"file: '$tmp/file' is open for writing in process $holder \(sleep\)"
	must_fail grep "warning: aaa: " "$tmp/inner.log"
	kill_process "$inner_pid"
fi
kill_process "$holder"
# As QEMU does it, and as servers do: the description is on its way through a socket, so that no
# process has it open.
cat >"$tmp/lock.py" <<'END'
import fcntl, socket, struct, sys
mode, kind, start = sys.argv[2:]
f = open(sys.argv[1], mode)
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", getattr(fcntl, kind), 0, int(start, 16), 1, 0))
pair = socket.socketpair()
socket.send_fds(pair[0], [b"x"], [f.fileno()])
f.close()
print("locked", flush=True)
sys.stdin.read()
END
# warned_of_lock REGEX MODE KIND START OPTION...: that is all that the server says of it.
warned_of_lock() {
	local regex=$1 word
	coproc locker { python3 "$tmp/lock.py" "$tmp/file" "$2" "$3" "$4"; }
	local pid=$locker_PID in=${locker[1]}
	shift 4
	read -r -t "$TIMEOUT_S" word <&"${locker[0]}"
	[ "$word" = locked ]
	start_server "$@" "file=$tmp/file"
	stop_process "$server_pid"
	cat "$server_log"
	grep -E "warning: file: '$tmp/file' $regex" "$server_log"
	[ "$(grep -c 'warning: file:' "$server_log")" -eq 1 ]
	eval "exec $in>&-"
	wait "$pid"
}
warned_of_lock 'is locked by another program, in the way of QEMU' rb F_RDLCK 64
warned_of_lock 'is exported for writing by another server' r+b F_WRLCK 7274727300000000 --no-lock
warned_of_lock 'is locked against writers by a process that reads it: ignored' rb F_RDLCK \
	7274727300000000

printed_commands_end
