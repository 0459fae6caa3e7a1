# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Storage that fails or waits when a test wants it, and NBD clients that go step by step; sourced
# after functions.sh.

# held_fs FILE: the file $tmp/mnt/disk, which is FILE, on storage that a client of $tmp/held.sock
# holds (hostile/held-fs.c).  Its log is $tmp/held-fs.log.
held_fs() {
	local ready=''
	[ -w /dev/fuse ] || skip "no FUSE: /dev/fuse cannot be used"
	mkdir -p "$tmp/mnt"
	mkfifo "$tmp/mounted"
	./tests/hostile/held-fs "$1" "$tmp/mnt" "$tmp/held.sock" >"$tmp/mounted" \
		2>"$tmp/held-fs.log" &
	cleanup_fn stop_held_fs $!
	read -r -t "$TIMEOUT_S" ready <"$tmp/mounted" || true
	[ "$ready" = ready ] || { cat "$tmp/held-fs.log"; skip "cannot mount FUSE here"; }
}
# It may not have come.
stop_held_fs() {
	process_ended "$1" || stop_process "$1"
}

# hole_fs SIZE [KIND]: the file $tmp/mnt/disk on a file system of fuse-hole.py; its log is
# $tmp/fuse.log.
hole_fs() {
	[ -w /dev/fuse ] || skip "no /dev/fuse"
	mkdir "$tmp/mnt"
	/usr/bin/python3 "$top_srcdir/tests/fuse-hole.py" "$tmp/mnt" "$@" </dev/null \
		>"$tmp/fuse.log" 2>&1 &
	local pid=$!
	mounted_or_ended() { grep -q '^mounted$' "$tmp/fuse.log" || process_ended $pid; }
	wait_until "the file system" mounted_or_ended
	grep -q '^mounted$' "$tmp/fuse.log" || skip "cannot mount FUSE here: $(cat "$tmp/fuse.log")"
	cleanup_fn expect_exit $pid 0	# when it is unmounted
	cleanup_umount "$tmp/mnt"
}

# loop_device FILE [OPTION...]: sets loop.
loop_device() {
	loop=$(losetup -f --show "${@:2}" "$1") || skip "no loop device: losetup ${*:2}"
	cleanup_fn detach_loop "$loop"
}
# The driver closes its file when the last user has gone.
detach_loop() {
	loop_is_free() { ! losetup "$1"; }
	losetup -d "$1"
	wait_until "the loop device to let go" loop_is_free "$1"
}

# ext4_in_tmpfs TMPFS-SIZE IMAGE-SIZE DISK-SIZE DIR [MKE2FS-OPTION...]: DIR/disk has its blocks, so
# a write to the page cache succeeds, and none is left in the tmpfs when $tmp/backing is full.
ext4_in_tmpfs() {
	local dir=$4
	mkdir "$tmp/backing" "$dir"
	mount -t tmpfs -o size="$1" tmpfs "$tmp/backing" || skip "cannot mount a tmpfs here"
	cleanup_umount "$tmp/backing"
	truncate -s "$2" "$tmp/backing/image"
	mke2fs -q -F -t ext4 "${@:5}" "$tmp/backing/image"
	loop_device "$tmp/backing/image"
	mount -t ext4 -o errors=continue "$loop" "$dir" || skip "cannot mount ext4 from $loop"
	cleanup_umount "$dir"
	fallocate -l "$3" "$dir/disk"
	sync -f "$dir"
}

# steps URI [ARGUMENT...] <PYTHON: a client, h, that calls a function of PYTHON for each line of
# ask(), and answers what the function returns, or the error of NBD.  $tmp/steps.py is made once.
steps() {
	[ -e "$tmp/steps.py" ] || cat >"$tmp/steps.py" - <(cat <<'END'

for line in sys.stdin:
    try:
        step, *args = line.split()
        print(globals()[step](*args) or "ok", flush=True)
    except nbd.Error as e:
        print(e.errno, flush=True)
END
	)
	coproc client { timeout $((8 * TIMEOUT_S)) /usr/bin/python3 -c 'import os, socket, sys, nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
exec(open(os.environ["steps"]).read())' "$@"; }
	steps_pid=$client_PID
}
# ask "STEP ARGUMENT..." ANSWER
ask() {
	local answer=""
	echo "$1" >&"${client[1]}"
	read -r -t $((2 * TIMEOUT_S)) answer <&"${client[0]}" || fail "no answer to $1"
	[ "$answer" = "$2" ] || fail "$1 is answered $answer instead of $2"
}
steps_end() {
	eval "exec ${client[1]}>&-"
	expect_exit "$steps_pid" 0
}
export steps=$tmp/steps.py

# holds_open URI [PYTHON]: an NBD client that has the export open until let_go(), and then does
# PYTHON.
holds_open() {
	mkfifo "$tmp/opened" "$tmp/end"
	nbdsh_run "$1" <<-END &
	open("$tmp/opened", "w").close()
	open("$tmp/end").close()
	${2-}
	END
	holder=$!
	cleanup_fn kill_process $holder
	timeout "$TIMEOUT_S" cat "$tmp/opened"
}
let_go() {
	timeout "$TIMEOUT_S" tee "$tmp/end" </dev/null
	expect_exit $holder 0
	rm "$tmp/opened" "$tmp/end"
}
