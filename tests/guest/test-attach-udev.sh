#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=120 full
# udev's links to a device of rtrs-attach and its partition, and its volumes of LVM, beside the
# rules of the system.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_attach; requires_server
requires sfdisk --version
requires lvm version
udevd=/lib/systemd/systemd-udevd
[ -x $udevd ] || skip "systemd-udevd is not installed"

rules=$top_builddir/contrib/udev/60-rtrs-attach.rules
# Where the rule finds the program.
program=$(sed -n 's/.*IMPORT{program}="\([^ ]*\) .*/\1/p' "$rules")
mkdir -p "${program%/*}" /etc/udev/rules.d
cp "$RTRS_ATTACH" "$program"
cp "$rules" /etc/udev/rules.d

# What is left there has libdm believe that udev makes its nodes.
cleanup_fn rm -rf /run/udev
$udevd --daemon
cleanup_fn udevadm control --exit
truncate -s 64M "$tmp/disk"
start_server "a disk=$tmp/disk"

# leads LINK DISK
leads() {
	[ "$(readlink -f "$1")" = "/dev/$2" ]
}
gone() {
	[ ! -e "$1" ]
}

# links VIA
links() {
	local disk by_id=/dev/disk/by-id/rtrs-127.0.0.1:$server_port-a_disk link

	"$RTRS_ATTACH" "--via=$1" "127.0.0.1:$server_port/a disk" disk0
	# udev has others of nbd open, and the kernel takes one that nobody has.
	disk=$(sed -n 's/^disk=//p' /run/rtrs/attach/disk0)
	wait_until "the link by id" leads "$by_id" "$disk"
	leads /dev/rtrs/disk0 "$disk"
	echo ',32M' | sfdisk --quiet /dev/rtrs/disk0
	wait_until "the link of the partition" leads /dev/rtrs/disk0-part1 "${disk}p1"
	wait_until "its link by id" leads "$by_id-part1" "${disk}p1"
	mkfs.ext4 -q -F -L some-label /dev/rtrs/disk0-part1
	wait_until "its link by label" leads /dev/disk/by-label/some-label "${disk}p1"
	# The next process makes the same links.
	kill -KILL "$(sed -n 's/^pid=//p' /run/rtrs/attach/disk0)"
	"$RTRS_ATTACH" "--via=$1" "127.0.0.1:$server_port/a disk" disk0
	udevadm settle
	leads /dev/rtrs/disk0 "$disk"
	leads "$by_id" "$disk"
	"$RTRS_DETACH" disk0
	for link in /dev/rtrs/disk0 "$by_id" /dev/rtrs/disk0-part1 /dev/disk/by-label/some-label
	do
		wait_until "the end of $link" gone "$link"
	done
}

# volumes VIA: the system's rules activate them as soon as their disk is there, again.
volumes() {
	local attach=("$RTRS_ATTACH" "--via=$1" "127.0.0.1:$server_port/a disk" disk0)

	"${attach[@]}"
	wipefs -q -a /dev/rtrs/disk0
	pvcreate /dev/rtrs/disk0
	vgcreate layers /dev/rtrs/disk0
	lvcreate -y -n home -L 8M layers
	vgchange -an layers
	"$RTRS_DETACH" disk0
	"${attach[@]}"
	wait_until "the volume" test -b /dev/layers/home
	must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
	grep "(layers-home) is on it" "$tmp/err"
	vgremove -f -y layers
	"$RTRS_DETACH" disk0
}

modprobe -a nbd ublk_drv dm_mod
cleanup_fn "$RTRS_DETACH" --all
for via in nbd ublk; do
	links "$via"
	volumes "$via"
done
