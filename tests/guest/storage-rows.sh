# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# The storages of doc/storage.md, for test-storage-table.sh: how each is made, grows, fills and
# goes.
#
#	row_NAME	makes it and defines the functions of the row; sets
#		store		the path that the server exports
#		lower		the same storage below the file system of $store, if there is one
#		disks		names in /sys/block whose flushes make $store durable; none: memory
#
# Functions of a row, each missing where there is no such thing:
#	used		KiB that are allocated
#	grow		to $grown KiB
#	shrink		to half of $size_kib
#	fill, unfill	take all space, and give it back
#	renew		in the place of unfill: make it again, closed, because a full one is lost
#	read_only	remount read-only; fails when the kernel refuses
#	break_it	make it read-only or fail, as after an error
#	down, up_again	away, and back under other numbers of its devices
#
# What they start and mount is undone by at_row_end, last one first.

size_kib=$((64 * 1024)) grown=$((80 * 1024))
row_functions='used grow shrink fill unfill renew read_only break_it down up_again'
mnt=$tmp/mnt back=$tmp/back

row_ends=()
at_row_end() { row_ends+=("$(printf '%q ' "$@")"); }

row_end() {
	local i

	for ((i = ${#row_ends[@]} - 1; i >= 0; i--)); do
		eval "${row_ends[$i]}" || fail "cannot undo: ${row_ends[$i]}"
	done
	row_ends=()
	# shellcheck disable=SC2086 # words
	unset -f $row_functions
}

row_has() { declare -F "$1" >/dev/null; }

# needs COMMAND...: else the row is skipped, loudly.
needs() {
	local command

	for command; do
		command -v "$command" >/dev/null || { why="$command is not installed"; return 1; }
	done
}

# no_udev COMMAND...: there is no udev here that dmsetup could wait for.
no_udev() { dmsetup "$@" --noudevrules --noudevsync; }

# ---- disks ----

nullb=/sys/kernel/config/nullb

# disk NAME MIB: /dev/NAME, in memory, with a volatile cache that counts only when flushed.
disk() {
	mkdir "$nullb/$1"
	echo "$2" >"$nullb/$1/size"
	echo 1 >"$nullb/$1/memory_backed"
	echo 1 >"$nullb/$1/discard"
	echo 16 >"$nullb/$1/cache_size"
	echo 1 >"$nullb/$1/power"
	wait_until "/dev/$1" test -b "/dev/$1"
	at_row_end disk_gone "$1"
}

disk_gone() { wait_until "$1 to go" rmdir "$nullb/$1"; }

# map NAME TABLE-LINE [OPTION...]: sets dm to /dev/dm-N.
map() {
	no_udev create "$1" "${@:3}" --table "$2"
	dm=/dev/dm-$(dmsetup info -c --noheadings -o minor "$1")
	wait_until "$dm" test -b "$dm"
}

unmap() { wait_until "$1 to go" no_udev remove "$1"; }

# ---- file systems ----

# Of a file system that has shut down mountpoint(1) knows nothing.
mount_free() { ! grep -q -F " $1 " /proc/mounts || umount_when_free "$1"; }

# fs_on TYPE DEVICE MKFS-OPTION...: a new file system at $back.
fs_on() {
	local type=$1 device=$2

	shift 2
	needs "mkfs.$type" || return 1
	"mkfs.$type" "$@" "$device" >/dev/null 2>&1 || { why="mkfs.$type fails"; return 1; }
	mkdir -p "$back"
	mount -t "$type" "$device" "$back" || { why="no $type in this kernel"; return 1; }
	at_row_end mount_free "$back"
}

# file_row PATH FILE: the functions of the file PATH, which is FILE on the file system at $back.
file_row() {
	store=$1 lower=$2 image=$2
	truncate -s "${size_kib}K" "$image"
	used() { sync -f "$image"; echo $(($(stat -c %b "$image") / 2)); }
	grow() { truncate -s "${grown}K" "$store"; }
	shrink() { truncate -s "$((size_kib / 2))K" "$store"; }
	read_only() { mount -o remount,ro "${store%/*}" 2>/dev/null; }
	fill() {
		local free

		sync -f "$back"
		free=$(stat -f -c '%a * %S / 1048576' "$back")
		fallocate -l $((free > 8 ? free - 8 : 1))M "$back/ballast" || true
		# The rest, by the bytes that can be stored.
		dd if=/dev/urandom of="$back/ballast2" bs=64K status=none 2>/dev/null || true
	}
	unfill() { rm -f "$back/ballast" "$back/ballast2"; sync -f "$back"; }
}

# again_under_a_map TYPE: as down and up_again, the file system of /dev/base has another device.
again_under_a_map() {
	map again "0 $((400 * 2048)) linear /dev/base 0"
	at_row_end unmap again
	mount -t "$1" "$dm" "$back"
	at_row_end mount_free "$back"
}

# fs_row TYPE OPTION...: a file on that file system on /dev/base.
fs_row() {
	fs_type=$1
	disk base 400
	fs_on "$1" /dev/base "${@:2}" || return 1
	disks=base
	file_row "$back/disk" "$back/disk"
	lower=''
	down() { umount_when_free "$back"; }
	up_again() { again_under_a_map "$fs_type"; }
}

# An error with which ext4 makes itself read-only.
ext4_error() { echo 1 >"/sys/fs/ext4/$(basename "$(findmnt -n -o SOURCE --mountpoint "$back")")/trigger_fs_error"; }
ext4_options=(-q -E nodiscard -e remount-ro)

# over_row MOUNT-FUNCTION: a file at $mnt, of a file system that stands on ext4 at $back.
over_row() {
	over=$1
	disk base 400
	fs_on ext4 /dev/base "${ext4_options[@]}" || return 1
	disks=base
	mkdir -p "$mnt" "$tmp/before"
	"$over" || { why="$over fails"; return 1; }
	at_row_end mount_free "$mnt"
	break_it() { ext4_error; }
	down() { umount_when_free "$mnt"; umount_when_free "$back"; }
	# Another mount takes the number that this one had.
	up_again() {
		mount -t tmpfs tmpfs "$tmp/before"
		at_row_end umount_when_free "$tmp/before"
		again_under_a_map ext4
		"$over"
		at_row_end mount_free "$mnt"
	}
}

row_ext4() {
	fs_row ext4 "${ext4_options[@]}" || return 1
	break_it() { ext4_error; }
}

row_XFS() {
	fs_row xfs -q -K || return 1
	break_it() { xfs_io -x -c shutdown "$back"; }
}

row_btrfs() { fs_row btrfs -q -K; }

row_tmpfs() {
	mkdir -p "$back"
	mount -t tmpfs -o size=100m tmpfs "$back"
	at_row_end mount_free "$back"
	file_row "$back/disk" "$back/disk"
	lower=''
}

mount_overlay() {
	mkdir -p "$back/lower" "$back/upper" "$back/work"
	truncate -s "${size_kib}K" "$back/lower/disk"
	mount -t overlay overlay \
		-o "lowerdir=$back/lower,upperdir=$back/upper,workdir=$back/work" "$mnt"
}

row_overlayfs() {
	over_row mount_overlay || return 1
	# Copied up.
	dd if=/dev/zero of="$mnt/disk" bs=4K count=1 conv=notrunc status=none
	file_row "$mnt/disk" "$back/upper/disk"
}

mount_bindfs() { bindfs "$back" "$mnt"; }

row_bindfs() {
	needs bindfs && over_row mount_bindfs || return 1
	file_row "$mnt/disk" "$back/disk"
}

mount_sshfs() {
	printf '#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n' >"$tmp/ssh"
	chmod +x "$tmp/ssh"
	sshfs -o "ssh_command=$tmp/ssh" "here:$back" "$mnt"
}

row_sshfs() {
	needs sshfs /usr/lib/openssh/sftp-server && over_row mount_sshfs || return 1
	file_row "$mnt/disk" "$back/disk"
}

row_fuse2fs() {
	needs fuse2fs mkfs.ext4 || return 1
	disk base 100
	mkfs.ext4 "${ext4_options[@]}" /dev/base >/dev/null
	disks=base
	mkdir -p "$back" "$tmp/before"
	fuse2fs /dev/base "$back" 2>/dev/null || { why="fuse2fs fails"; return 1; }
	at_row_end mount_free "$back"
	file_row "$back/disk" "$back/disk"
	lower=''
	down() { umount_when_free "$back"; wait_until "fuse2fs to end" no_fuse2fs; }
	up_again() {
		mount -t tmpfs tmpfs "$tmp/before"
		at_row_end umount_when_free "$tmp/before"
		fuse2fs /dev/base "$back" 2>/dev/null
		at_row_end mount_free "$back"
	}
}

no_fuse2fs() { ! pgrep -x fuse2fs; }

nfs_export() { exportfs -i -o "$1,no_root_squash,no_subtree_check,fsid=0" "127.0.0.1:$back"; }
# The server lets go of $back before that is unmounted.
nfs_unexport() { exportfs -ua; exportfs -f; }
mount_nfs() {
	at_row_end nfs_unexport
	nfs_export rw && mount -t nfs4 -o vers=4.2 127.0.0.1:/ "$mnt"
}

nfs_server_ends() {
	rpc.nfsd 0
	kill "$mountd" 2>/dev/null || true
	wait "$mountd" || true
	umount_when_free /proc/fs/nfsd
}

nfs_down() { umount_when_free "$mnt"; nfs_unexport; umount_when_free "$back"; }

row_NFS_4_2() {
	needs rpc.nfsd rpc.mountd exportfs mount.nfs4 || return 1
	modprobe -a nfsd nfsv4 2>/dev/null || { why="no nfsd in this kernel"; return 1; }
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	rpc.mountd -F -N 3 >"$tmp/mountd.out" 2>&1 &
	mountd=$!
	rpc.nfsd -N 3 -V 4.2 1 || { why="rpc.nfsd fails"; nfs_server_ends; return 1; }
	at_row_end nfs_server_ends
	echo Y >/proc/fs/nfsd/v4_end_grace
	over_row mount_nfs || return 1
	down() { nfs_down; }
	file_row "$mnt/disk" "$back/disk"
}

# loop_row SECTOR
loop_row() {
	sector=$1
	disk base 400
	fs_on ext4 /dev/base "${ext4_options[@]}" || return 1
	disks=base
	file_row "$back/image" "$back/image"
	loop_up
	# Nothing locks the file of a loop device.
	unset -f read_only
	break_it() { ext4_error; }
	grow() { truncate -s "${grown}K" "$image"; losetup -c "$store"; }
	shrink() { truncate -s "$((size_kib / 2))K" "$image"; losetup -c "$store"; }
	down() { losetup -d "$store"; wait_until "$store to let go" loop_is_free; }
	up_again() {
		truncate -s 1M "$back/first"
		first=$(losetup -f --show "$back/first")
		at_row_end losetup -d "$first"
		loop_up
	}
}

loop_is_free() { ! losetup "$store"; }
loop_up() {
	store=$(losetup -f --show --sector-size "$sector" "$image")
	at_row_end loop_gone "$store"
}
loop_gone() { ! losetup "$1" >/dev/null 2>&1 || losetup -d "$1"; }

row_loop_512() { loop_row 512; }
row_loop_4096() { loop_row 4096; }

# ---- devices: made read-only by the block layer, whatever they are ----

block_row() {
	# shellcheck disable=SC2034 # of the test
	store=$1 lower=''
	break_it() { blockdev --setro "$store"; }
}

# reload NAME TABLE-LINE: another table of a device in use.
reload() {
	no_udev suspend "$1" --noflush
	dmsetup reload "$1" --table "$2"
	no_udev resume "$1"
}

row_null_blk() {
	disk base 64
	# shellcheck disable=SC2034 # of the test
	disks=base
	block_row /dev/base
}

row_zram() {
	modprobe zram num_devices=0 2>/dev/null || { why="no zram in this kernel"; return 1; }
	zram=$(cat /sys/class/zram-control/hot_add)
	at_row_end eval "echo $zram >/sys/class/zram-control/hot_remove"
	echo "${size_kib}K" >"/sys/block/zram$zram/disksize"
	wait_until "the device" test -b "/dev/zram$zram"
	block_row "/dev/zram$zram"
	used() { awk '{ print int($1 / 1024) }' "/sys/block/zram$zram/mm_stat"; }
	# 0 would be no limit.
	fill() { awk '{ print $3 + 1 }' "/sys/block/zram$zram/mm_stat" >"/sys/block/zram$zram/mem_limit"; }
	unfill() { echo 0 >"/sys/block/zram$zram/mem_limit"; }
}

# A full pool learns of freed space with its next commit, within a second or so.
pool_writes() { dmsetup status pool | grep -q ' rw '; }
thin_line() { echo "0 $(($1 * 2)) thin $pool 0"; }

row_dm_thin() {
	needs dmsetup || return 1
	modprobe dm_thin_pool 2>/dev/null || { why="no dm-thin in this kernel"; return 1; }
	# How long a full pool keeps requests; 60 s if nobody says so.
	echo 2 >/sys/module/dm_thin_pool/parameters/no_space_timeout
	disk meta 16
	disk base 64
	disks=base
	map pool "0 $((64 * 2048)) thin-pool /dev/meta /dev/base 128 0"
	pool=$dm
	at_row_end unmap pool
	dmsetup message pool 0 "create_thin 0"
	dmsetup message pool 0 "create_thin 1"
	map thin "$(thin_line "$size_kib")" --uuid LVM-thin
	at_row_end unmap thin
	block_row "$dm"
	map ballast "0 $((128 * 2048)) thin $pool 1"
	ballast=$dm
	at_row_end unmap ballast
	used() { echo $(($(dmsetup status thin | cut -d ' ' -f 4) / 2)); }
	fill() {
		local free

		free=$(dmsetup status pool | awk '{ split($6, n, "/"); print n[2] - n[1] }')
		dd if=/dev/zero of="$ballast" bs=64K count="$free" oflag=direct status=none
	}
	unfill() { blkdiscard "$ballast"; wait_until "the pool to write" pool_writes; }
	grow() { reload thin "$(thin_line "$grown")"; }
	shrink() { reload thin "$(thin_line $((size_kib / 2)))"; }
	down() { unmap thin; }
	up_again() {
		map first "0 8 error"
		at_row_end unmap first
		map thin "$(thin_line "$grown")" --uuid LVM-thin
		block_row "$dm"
	}
}

snapshot_line="0 $((size_kib * 2)) snapshot /dev/base /dev/cow P 8"

row_LVM_snapshot() {
	needs dmsetup || return 1
	modprobe dm_snapshot 2>/dev/null || { why="no dm-snapshot in this kernel"; return 1; }
	disk base 64
	disk cow 16
	disks=cow
	map snap "$snapshot_line" --uuid LVM-snap
	at_row_end unmap snap
	block_row "$dm"
	fill() { dd if=/dev/zero of="$store" bs=1M seek=48 count=16 oflag=direct status=none 2>/dev/null || true; }
	renew() {
		unmap snap
		dd if=/dev/zero of=/dev/cow bs=4K count=1 oflag=direct status=none
		map snap "$snapshot_line" --uuid LVM-snap
		block_row "$dm"
	}
	down() { unmap snap; }
	up_again() {
		map first "0 8 error"
		at_row_end unmap first
		map snap "$snapshot_line" --uuid LVM-snap
		block_row "$dm"
	}
}

row_md_raid1() {
	needs mdadm || return 1
	modprobe raid1 2>/dev/null || { why="no raid1 in this kernel"; return 1; }
	export MDADM_NO_UDEV=1
	disk base 128
	disk base2 128
	# shellcheck disable=SC2034 # of the test
	disks='base base2'
	mdadm --create /dev/md9 --quiet --run --assume-clean --metadata=1.2 --bitmap=none --level=1 \
		--raid-devices=2 --size="${size_kib}K" /dev/base /dev/base2 ||
			{ why="mdadm fails"; return 1; }
	at_row_end md_gone
	block_row /dev/md9
	grow() { mdadm --grow --quiet /dev/md9 --size="${grown}K"; }
	down() { mdadm --stop --quiet /dev/md9; }
	up_again() { mdadm --assemble --quiet /dev/md8 /dev/base /dev/base2; block_row /dev/md8; }
}

md_gone() {
	local md

	for md in /dev/md8 /dev/md9; do
		[ ! -b $md ] || mdadm --stop --quiet $md || true
	done
}
