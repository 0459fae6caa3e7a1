#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 smp=4 clock=instructions timeout=240 full
# guest: kernel=6.12 smp=4 timeout=240 full
# guest: kernel=6.1 smp=4 timeout=240 full
# The kernel's rnbd-client maps exports of rtrs-server and uses them as disks: one connection for
# each CPU and one more, all access modes, a file system, every operation, two devices in one
# session.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
requires fio --version
requires mkfs.ext4 -V

size=$((128 << 20))
truncate -s $size "$tmp/disk"
random_file "$tmp/second" $((8 << 20))
random_file "$tmp/ro" $((4 << 20))
modprobe rnbd-client

# Blocks of 512 bytes that the disk of the server has.
blocks() {
	stat -c %b "$tmp/disk"
}

# is_zero OFFSET LENGTH: as the device reads.
is_zero() {
	dd if="$dev" bs=64k skip="$1" count="$2" iflag=direct,skip_bytes,count_bytes status=none |
		cmp -n "$2" - /dev/zero
}

# Zeroes keep their blocks if the client says NOUNMAP (blkdiscard -z since 7), and a hole (fallocate -p)
# has none.  A client without WRITE_ZEROES writes the zeroes, and has no holes.
zeroes_and_holes() {
	local at=$((4 << 20)) kept full zeroed

	case $(uname -r) in
	6.1.*) zeroed=written ;;
	6.*) zeroed=freed ;;
	*) zeroed=kept ;;
	esac
	[ $zeroed = written ] ||
		[ "$(cat "/sys/block/${dev#/dev/}/queue/write_zeroes_max_bytes")" -gt 0 ] ||
		fail "the device has no WRITE_ZEROES"
	dd if="$tmp/data" of="$dev" bs=1M count=2 seek=4 oflag=direct status=none
	full=$(blocks)
	blkdiscard -z --offset $at --length $((1 << 20)) "$dev"
	is_zero $at $((1 << 20))
	kept=$full
	[ $zeroed != freed ] || kept=$((full - (2 << 10)))
	[ "$(blocks)" -eq $kept ] || fail "blkdiscard -z: $(blocks) blocks instead of $kept"
	[ $zeroed != written ] || return 0
	fallocate -p -o $at -l $((2 << 20)) "$dev"
	is_zero $at $((2 << 20))
	[ "$(blocks)" -eq $((full - (4 << 10))) ] || fail "fallocate -p: $(blocks) blocks of $full"
}

all_operations() {
	echo "== $1: data"
	rnbd_map s1 disk
	[ "$(blockdev --getsize64 "$dev")" -eq $size ] || fail "size of $dev"
	wait_line "$server_log" "path up, 5 connections, session s1"
	random_file "$tmp/data" $((4 << 20))
	dd if="$tmp/data" of="$dev" bs=1M oflag=direct status=none
	dd if="$dev" bs=1M count=4 iflag=direct status=none | cmp - "$tmp/data"
	cmp -n $((4 << 20)) "$tmp/data" "$tmp/disk"
	# One request each: 512 bytes, the longest, and FUA, flush, discard.
	dd if="$tmp/data" of="$dev" bs=512 count=3 seek=9 oflag=direct,dsync status=none
	cmp -n 1536 "$tmp/data" "$tmp/disk" 0 4608
	fio --name=verify --filename="$dev" --direct=1 --ioengine=libaio --iodepth=16 --numjobs=2 \
		--offset_increment=32m --size=8m --rw=randwrite --bsrange=512-256k \
		--bs_unaligned=0 \
		--blockalign=512 --fsync=64 --verify=crc32c \
		--verify_state_save=0 --verify_fatal=1 --output="$tmp/fio.out" ||
		{ cat "$tmp/fio.out"; fail fio; }
	# FLUSHes of all CPUs at once; this file system is none that the server knows.
	fio --name=flush --filename="$dev" --direct=1 --ioengine=libaio --numjobs=4 \
		--offset_increment=4m --size=4m --rw=randwrite --bs=4k --number_ios=50 --fsync=1 \
		--output="$tmp/fio.out" || { cat "$tmp/fio.out"; fail "fio --fsync=1"; }
	echo "== $1: discard"
	blkdiscard --offset $((1 << 20)) --length $((2 << 20)) "$dev"
	dd if="$dev" bs=1M skip=1 count=2 iflag=direct status=none | cmp -n $((2 << 20)) - /dev/zero
	echo "== $1: zeroes and holes"
	zeroes_and_holes
	echo "== $1: file system"
	mkfs.ext4 -q "$dev"
	mkdir -p "$tmp/mnt"
	mount -o discard "$dev" "$tmp/mnt"
	cp -r "$top_srcdir/src" "$tmp/mnt/"
	sync -f "$tmp/mnt"
	diff -r "$top_srcdir/src" "$tmp/mnt/src"
	rm -r "$tmp/mnt/src/common"
	must_fail rnbd_unmap "$dev"
	umount "$tmp/mnt"
	fsck.ext4 -f -n "$dev"
	rnbd_unmap "$dev"
}

for mode in never always copy; do
	start_server --listen "rdma://$ip4:1234" --invalidate=$mode \
		--log-level=debug disk="$tmp/disk" \
		second="$tmp/second" ro="$tmp/ro",readonly
	all_operations $mode
	[ $mode != copy ] || break
	stop_server "$server_pid"
	[ $mode != always ] ||
		grep -q -E 'keys: [0-9]+ given, [0-9]{3,} taken away, 0 flushed' "$server_log" ||
		{ grep 'keys: ' "$server_log"; fail "keys were not taken away"; }
done

echo "== access modes"
rnbd_map s2 ro access_mode=ro
[ "$(blockdev --getro "$dev")" -eq 1 ]
cmp "$dev" "$tmp/ro"
must_fail dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct
first=$dev
echo "== two devices in one session"
rnbd_map s2 second access_mode=migration
cmp "$dev" "$tmp/second"
cmp "$first" "$tmp/ro"
dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct status=none
cmp -n 4096 "$tmp/second" /dev/zero
rnbd_unmap "$first"
cmp "$dev" "$tmp/second"
second=$dev

echo "== what cannot be opened is refused quickly"
must_fail rnbd_map s2 nothere
must_fail rnbd_map s3 nothere
must_fail rnbd_map s3 ro access_mode=rw
rnbd_map s4 disk
other=$dev
must_fail rnbd_map s5 disk
for export in nothere disk; do
	[ "$(tenths rnbd_map s6 $export)" -lt 30 ] || fail "refusing $export took long"
done
rnbd_unmap "$other"
rnbd_map s5 disk
rnbd_unmap "$dev"
rnbd_unmap "$second"

echo "== polled connections"
rnbd_map s7 disk nr_poll_queues=2
wait_line "$server_log" "path up, 7 connections, session s7"
fio --name=poll --filename="$dev" --direct=1 --ioengine=pvsync2 --hipri --rw=randrw --bs=4k \
	--size=2m \
	--verify=crc32c \
	--verify_state_save=0 --output="$tmp/fio.out" || { cat "$tmp/fio.out"; fail "fio --hipri"; }
rnbd_unmap "$dev"
