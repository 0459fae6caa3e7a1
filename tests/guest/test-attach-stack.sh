#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 smp=1 clock=instructions timeout=600 full
# What stands on a device of rtrs-attach: by nbd LVM in an encrypted disk, by ublk an encrypted
# volume of LVM; ext4 with a snapshot, and XFS.  Load on both file systems is verified while the
# process, the server and each path are killed, and while all layers grow with the export.
# rtrs-detach names the layer that is in use, and all is there when the stack is built again.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
. "$top_srcdir/tests/guest/attach-kills.sh"
requires cryptsetup --version
requires lvm version
requires mkfs.xfs -V

modprobe -a nbd ublk_drv dm_crypt dm_snapshot xfs ext4
# XFS takes 300 MiB.
small_mb=640 grown_mb=704
systems=(ext4 xfs)
head -c 32 /dev/urandom >"$tmp/key"
for name in "${systems[@]}" snapshot; do
	mkdir "$tmp/$name"
done

# Nobody watches volumes here, and no udev makes nodes.
lvm_config='activation { monitoring=0 udev_sync=0 udev_rules=0 }
	devices { obtain_device_list_from_udev=0 }'
export LVM_SUPPRESS_FD_WARNINGS=1
lvm_do() {
	"$1" --config "$lvm_config" "${@:2}"
}

crypt() {
	cryptsetup "$1" --batch-mode --key-file "$tmp/key" "${@:2}"
}

crypt_format() {
	crypt luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$1"
}

crypt_open() {
	crypt open --allow-discards "$1" secret
}

# What the layers are.
layers_of() {
	case $1 in
	nbd) under=$node pv=/dev/mapper/secret xfs=/dev/layers/xfs top=secret ;;
	ublk) under=/dev/layers/xfs pv=$node xfs=/dev/mapper/secret top=layers-ext4 ;;
	esac
}

volumes_create() {
	lvm_do pvcreate "$pv"
	lvm_do vgcreate layers "$pv"
	lvm_do lvcreate -y -n ext4 -L 96M layers
	lvm_do lvcreate -y -n xfs -L 336M layers
}

stack_create() {
	case $via in
	nbd) crypt_format "$under"; crypt_open "$under"; volumes_create ;;
	ublk) volumes_create; crypt_format "$under"; crypt_open "$under" ;;
	esac
	mkfs.ext4 -q /dev/layers/ext4
	mkfs.xfs -q "$xfs"
	stack_mount
}

stack_mount() {
	mount /dev/layers/ext4 "$tmp/ext4"
	mount "$xfs" "$tmp/xfs"
}

# As a start of the machine does.
stack_open() {
	case $via in
	nbd) crypt_open "$under"; lvm_do vgchange -ay layers ;;
	ublk) lvm_do vgchange -ay layers; crypt_open "$under" ;;
	esac
	fsck.ext4 -f -n /dev/layers/ext4
	xfs_repair -n "$xfs"
	stack_mount
}

stack_close() {
	umount "$tmp/ext4" "$tmp/xfs"
	case $via in
	nbd) lvm_do vgchange -an layers; cryptsetup close secret ;;
	ublk) cryptsetup close secret; lvm_do vgchange -an layers ;;
	esac
}

users_end() {
	umount "$tmp/snapshot" "$tmp/ext4" "$tmp/xfs" 2>/dev/null || true
	dmsetup remove_all --retry || true
}

# Of that size are the sectors of an encrypted disk, if its disk has such blocks.
begin_loads() {
	local name

	for name in "${systems[@]}"; do
		truncate -s 32M "$tmp/$name/load"
		begin_load "$name" "$tmp/$name/load" 4096
	done
}

snapshot_begin() {
	head -c 8M /dev/urandom | tee "$tmp/ext4/file" | sha256sum >"$tmp/sum"
	sync -f "$tmp/ext4"
	lvm_do lvcreate -y -s -n before -L 96M layers/ext4
	head -c 8M /dev/urandom >"$tmp/ext4/file"
}

snapshot_end() {
	sync -f "$tmp/ext4"
	mount -o ro /dev/layers/before "$tmp/snapshot"
	sha256sum <"$tmp/snapshot/file" | cmp - "$tmp/sum"
	must_fail cmp -s "$tmp/snapshot/file" "$tmp/ext4/file"
	umount "$tmp/snapshot"
	lvm_do lvremove -y layers/before
}

# More than was free: each layer has to know the new size.
grow_layers() {
	[ "$via" != nbd ] || crypt resize secret
	lvm_do pvresize "$pv"
	lvm_do lvextend -L +80M layers/ext4
	lvm_do lvextend -L +96M layers/xfs
	[ "$via" != ublk ] || crypt resize secret
	resize2fs /dev/layers/ext4
	xfs_growfs "$tmp/xfs"
	larger_than 140 "$tmp/ext4"
	larger_than 350 "$tmp/xfs"
}

# larger_than MIB FILE-SYSTEM
larger_than() {
	[ "$(df --output=size -m "$2" | tail -n 1)" -gt "$1" ] || fail "$2 has not grown"
}

# 6.12's ublk takes a new size when the device is made again.
grow() {
	truncate -s ${grown_mb}M "$tmp/disk"
	if [ "$via" = nbd ] || kernel_preempts; then
		wait_until "the new size" size_is $((grown_mb << 20))
		grow_layers
		loads_go_on "growth"
		end_loads
		return
	fi
	end_loads
	stack_close
	"$RTRS_DETACH" disk0
	attach
	stack_open
	grow_layers
}

blocks_at_most() {
	[ "$(stat -c %b "$tmp/disk")" -le "$1" ]
}

# Discards come through all layers.
trim() {
	local blocks name

	for name in "${systems[@]}"; do
		dd if=/dev/zero of="$tmp/$name/load" bs=1M count=16 conv=fsync status=none
	done
	blocks=$(stat -c %b "$tmp/disk")
	for name in "${systems[@]}"; do
		rm "$tmp/$name/load"
		fstrim "$tmp/$name"
	done
	wait_until "fewer blocks" blocks_at_most $((blocks - (24 << 11)))
}

keep() {
	head -c 4M /dev/urandom | tee "$tmp/xfs/file" | sha256sum >"$tmp/sum.xfs"
	sha256sum <"$tmp/ext4/file" >"$tmp/sum.ext4"
}

check_kept() {
	local name

	for name in "${systems[@]}"; do
		sha256sum <"$tmp/$name/file" | cmp - "$tmp/sum.$name"
	done
}

in_use() {
	must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
	grep -q "/dev/$disk: device /dev/dm-[0-9]* ($top) is on it" "$tmp/err" ||
		fail "the layer is not named: $(cat "$tmp/err")"
}

stack() {
	via=$1
	layers_of "$via"
	attach
	stack_create
	snapshot_begin
	begin_loads
	kill_processes 2
	kill_servers 2 kill_between_syncs
	pull_paths 1
	snapshot_end
	grow
	trim
	keep
	in_use
	stack_close
	"$RTRS_DETACH" disk0
	attach
	stack_open
	check_kept
	stack_close
	"$RTRS_DETACH" disk0
}

truncate -s ${small_mb}M "$tmp/disk"
two_paths
stack nbd
kill_process "$server_pid"
rm "$tmp/disk"
truncate -s ${small_mb}M "$tmp/disk"
restart_server
stack ublk
