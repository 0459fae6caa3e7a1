#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=1800 full
# guest: kernel=6.1 timeout=1200 full
# guest: kernel=7.3 timeout=1800 full
# Devices of rtrs-attach by both drivers under load that is verified, on their sectors and on ext4:
# process, server and each of two paths are killed [20] times, and frozen; both processes and both
# paths at once.  No request fails.  Then servers are killed in syncs, too, and syncs alone fail.
#
# For another number:	run.sh --timeout 600 tests/guest/test-attach-kills.sh 2
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
. "$top_srcdir/tests/guest/attach-kills.sh"
requires dmsetup version
times=${1:-20} frosts=$((${1:-20} / 4 + 1))
drivers=(nbd)
modprobe -a nbd dm_mod ext4
! modprobe -q ublk_drv || drivers+=(ublk)

# Load on sectors writes to the first 32 MiB; ext4 has the rest.
size_mb=160 first_mb=32
truncate -s ${size_mb}M "$tmp/disk"

begin_files() {
	echo "0 $(((size_mb - first_mb) << 11)) linear $node $((first_mb << 11))" |
		dmsetup create files
	# Nobody makes links here.
	files=/dev/dm-$(dmsetup info -c --noheadings -o minor files)
	mkfs.ext4 -q -F "$files"
	mount "$files" "$tmp/mnt"
	truncate -s 32M "$tmp/mnt/load"
}

end_files() {
	umount "$tmp/mnt"
	fsck.ext4 -f -n "$files"
	dmsetup remove files
}

users_end() {
	! mountpoint -q "$tmp/mnt" || umount "$tmp/mnt"
	[ ! -e /dev/mapper/files ] || dmsetup remove --retry files
}

same() {
	echo 3 >/proc/sys/vm/drop_caches
	cmp $node "$tmp/disk"
}

kill_all() {
	via=$1
	attach
	begin_files
	begin_load
	begin_load files "$tmp/mnt/load" 4096
	echo "$via: the process is killed"
	kill_processes "$times"
	echo "$via: the server is killed"
	kill_servers "$times" kill_between_syncs
	echo "$via: paths are lost"
	pull_paths "$times"
	echo "$via: process and server freeze"
	freeze_each $frosts
	echo "$via: both are killed at once"
	kill_both kill_between_syncs
	end_loads
	end_files
	same
	echo "$via: the server is killed at any moment"
	begin_load
	syncs_may_fail
	kill_servers "$times" kill_process
	kill_both kill_process
	end_loads
	same
	"$RTRS_DETACH" disk0
}

two_paths
for via in "${drivers[@]}"; do
	kill_all "$via"
done
