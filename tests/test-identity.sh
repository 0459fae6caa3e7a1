#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# By what clients know a file again: XFS by its UUID, from whatever device it is mounted; id= in
# place of that.  Files of two file systems with one UUID are refused beside each other, those of a
# btrfs snapshot and its origin are not.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin
requires nbdsh --version

# ---- id= ----

random_file "$tmp/a" 1M
cp "$tmp/a" "$tmp/b"
# comes_back SPEC: the server is started again with SPEC.
comes_back() {
	stop_server "$server_pid"
	start_server --listen "tcp://127.0.0.1:$port" "$1"
}
works() { nbdsh_run "$uri" <<<'h.pwrite(b"y" * 512, 512); h.flush()'; }
begins() {
	start_server "$1"
	port=$server_port
	start_nbdkit "server=127.0.0.1:$port" export=disk io-timeout="$TIMEOUT_S"
	nbdsh_run "$uri" <<<'h.pwrite(b"x" * 512, 0)'
	holds_open "$uri" "assert h.pread(512, 0) == b'x' * 512; h.pwrite(b'z' * 512, 512)"
}
ends() {
	let_go
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
}

begins "disk=$tmp/a,id=gold"
[ -e "$RUNTIME_DIRECTORY/id-gold.lock" ] && [ -e "$RUNTIME_DIRECTORY/id-gold.state" ]
comes_back "disk=$tmp/a,id=gold"
works
stop_server "$server_pid"
cp "$tmp/a" "$tmp/b"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/b,id=gold"
ends

refused() { # REGEX SPEC...
	expect_failure "1|2" "$1" timeout "$TIMEOUT_S" "$RTRS_SERVER" --strict \
		--listen "unix:$tmp/refused" "${@:2}"
}
refused "'$tmp/b': '$tmp/a' of export 'a' has the same id=" "a=$tmp/a,id=x" "b=$tmp/b,id=x"
refused "'$tmp/a': '$tmp/a' of export 'a' is the same storage with another id=" \
	"a=$tmp/a,id=x" "b=$tmp/a,readonly"
refused "id='x/y': expected at most 64 letters" "a=$tmp/a,id=x/y"
refused "export 'a': 'id=' is given twice" "a=$tmp/a,id=x,id=y"
start_server --listen "unix:$tmp/s" "a=$tmp/a,id=x" "b=$tmp/a,readonly,id=x"
stop_process "$server_pid"

# ---- file systems ----

[ "$(id -u)" -eq 0 ] || skip "all passed but file systems, which need root"
untried=''
loops=()
detach() { losetup -d "$1" 2>/dev/null || true; }
cleanup_loops() { local l; for l in "${loops[@]}"; do detach "$l"; done; }
cleanup_fn cleanup_loops
attach() { # FILE: sets loop
	loop=$(losetup -f --show "$1") || skip "all passed but file systems: no loop devices here"
	loops+=("$loop")
}
mkdir "$tmp/mnt" "$tmp/copy"
unmount() { ! mountpoint -q "$1" || umount_when_free "$1"; }
cleanup_fn unmount "$tmp/mnt"
cleanup_fn unmount "$tmp/copy"

truncate -s 512M "$tmp/image"
attach "$tmp/image"
if mkfs.xfs -q "$tmp/image" && mount -t xfs "$loop" "$tmp/mnt"; then
	cp "$tmp/a" "$tmp/mnt/disk"
	begins "disk=$tmp/mnt/disk"
	stop_server "$server_pid"
	unmount "$tmp/mnt"
	# The former device has the number of before, and is not free.
	attach "$tmp/image"
	mount -t xfs "$loop" "$tmp/mnt"
	start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/mnt/disk"
	ends

	unmount "$tmp/mnt"
	cp --sparse=always "$tmp/image" "$tmp/snapshot"
	mount -t xfs "$loop" "$tmp/mnt"
	attach "$tmp/snapshot"
	mount -t xfs -o nouuid "$loop" "$tmp/copy"
	refused "'$tmp/copy/disk': '$tmp/mnt/disk' of export 'a' looks the same to clients" \
		"a=$tmp/mnt/disk" "b=$tmp/copy/disk"
	start_server --listen "unix:$tmp/s" "a=$tmp/mnt/disk" "b=$tmp/copy/disk,id=snapshot"
	stop_process "$server_pid"
	unmount "$tmp/copy"
	unmount "$tmp/mnt"
else
	untried="$untried XFS"
fi

truncate -s 0 "$tmp/image"
truncate -s 512M "$tmp/image"
attach "$tmp/image"
if mkfs.btrfs -q "$loop" && mount -t btrfs "$loop" "$tmp/mnt"; then
	btrfs subvolume create "$tmp/mnt/origin"
	cp "$tmp/a" "$tmp/mnt/origin/disk"
	btrfs subvolume snapshot "$tmp/mnt/origin" "$tmp/mnt/snapshot"
	[ "$(stat -c %i "$tmp/mnt/origin/disk")" = "$(stat -c %i "$tmp/mnt/snapshot/disk")" ]
	start_server --listen "unix:$tmp/s" "a=$tmp/mnt/origin/disk" "b=$tmp/mnt/snapshot/disk"
	stop_process "$server_pid"
	unmount "$tmp/mnt"
else
	untried="$untried btrfs"
fi

if can_fuse; then
	mkdir "$tmp/fuse"
	fuse_run "$tmp/fuse/disk" nbdfuse "$tmp/fuse/disk" --command nbdkit --single memory 1M
	start_server --listen "unix:$tmp/s" "a=$tmp/fuse/disk"
	grep "warning: a: '$tmp/fuse/disk' is on FUSE,.*,id=NAME" \
		"$server_log"
	stop_process "$server_pid"
	start_server --listen "unix:$tmp/s" "a=$tmp/fuse/disk,id=a"
	must_fail grep "user space" "$server_log"
	stop_process "$server_pid"
else
	untried="$untried FUSE"
fi
[ -z "$untried" ] || skip "all passed, but not tried, for want of mkfs or a module:$untried"
