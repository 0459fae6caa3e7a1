#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a guest of capture.sh: the stock server, or the stock client and all that it can ask for.
set -eux
share=/run/guest
disk=/dev/loop0
ctl=/sys/devices/virtual/rnbd-client/ctl
server=10.1.0.1 self=10.1.0.2

await() {
	set +x
	until eval "$1"; do sleep 0.1; done
	set -x
}

server() {
	modprobe -a loop ext4
	# tmpfs cannot zero a range that keeps its blocks, and the client would not ask again.
	truncate -s 96M /run/fs
	mkfs.ext4 -q /run/fs
	mkdir /run/mnt
	losetup /dev/loop1 /run/fs
	mount /dev/loop1 /run/mnt
	truncate -s 64M /run/mnt/disk
	losetup $disk /run/mnt/disk
	for invalidate in Y N; do
		modprobe rtrs-server always_invalidate=$invalidate sess_queue_depth=16
		modprobe rnbd-server
		touch $share/up.$invalidate
		await "[ -e $share/end.$invalidate ]"
		rmmod rnbd-server rtrs-server
	done
}

# map SESSION DEVICE PATH...
map() {
	local session=$1 device=$2 p line
	shift 2
	line="sessname=$session"
	for p; do line+=" path=ip:$self@ip:$p"; done
	echo "$line device_path=$device" >$ctl/map_device
}

client() {
	local dev paths

	# A session whose first path goes to ourselves: the second server does not know it and says
	# -ENXIO.
	modprobe rnbd-server
	modprobe rnbd-client
	for invalidate in Y N; do
		await "[ -e $share/go.$invalidate ]"
		! map refused $disk $self $server || return 1
		# The session outlives neither failure.
		! map golden /dev/missing $server || return 1
		map golden $disk $server
		dev=/dev/rnbd0
		await "[ -b $dev ]"
		head -c 4096 /dev/zero | tr '\0' W >/run/pattern
		dd if=/run/pattern of=$dev bs=4096 count=1 seek=256 oflag=direct conv=notrunc,fsync
		dd if=$dev of=/run/back bs=4096 count=1 skip=256 iflag=direct
		cmp /run/pattern /run/back
		blkdiscard -o 1048576 -l 65536 $dev
		blkdiscard -z -o 2097152 -l 65536 $dev
		paths=$(echo /sys/devices/virtual/rtrs-client/golden/paths/*)
		await "! grep -q '^0 ns' $paths/cur_latency"
		# Those of the server go on their own clock.
		sleep 6
		echo normal >/sys/block/${dev#/dev/}/rnbd/unmap_device
		await "! [ -e /sys/devices/virtual/rtrs-client/golden ]"
		touch $share/done.$invalidate
	done
	rmmod rnbd-client
}

"$1"
