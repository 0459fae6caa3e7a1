#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: on a thin volume zeroes need no space: where blkdiscard -z zeroes, the blocks go back to the pool, as with a
# file, and so they do with FALLOC_FL_PUNCH_HOLE.  dm-thin of Linux 6.12 has no write-zeroes: blkdiscard -z and
# FALLOC_FL_ZERO_RANGE take a block of the pool for each block of zeroes, and fill the pool.  PUNCH_HOLE is EOPNOTSUPP.
# Only a discard gives blocks back, and they read as zeroes then.
. "$(dirname "$0")/guest.sh"

guest_packages linux-image-6.12.118+deb13-amd64=6.12.118-1 dmsetup=2:1.02.205-2
cat >"$tmp/job" <<'END'
export DM_DISABLE_UDEV=1
used() {
	dmsetup status pool | sed 's/.* \([0-9]*\/[0-9]*\) - rw .*/blocks \1/'
}
# try COMMAND... DEVICE
try() {
	local words=$*
	"$@" 2>/tmp/log || words="fails: $words"
	echo "${words% *}: $(used)"
}
truncate -s 4M /tmp/meta
truncate -s 64M /tmp/data
losetup /dev/loop0 /tmp/meta
losetup /dev/loop1 /tmp/data
dmsetup create pool --table "0 131072 thin-pool /dev/loop0 /dev/loop1 128 0"
dmsetup mknodes
dmsetup message pool 0 "create_thin 0"
dmsetup create thin --table "0 65536 thin /dev/mapper/pool 0"
dmsetup mknodes
thin=/dev/mapper/thin
echo "new: $(used), maximum of write-zeroes $(cat /sys/block/dm-1/queue/write_zeroes_max_bytes)"
try blkdiscard -z $thin
try blkdiscard $thin
try fallocate --keep-size --zero-range --length 1M $thin
try fallocate --punch-hole --length 1M $thin
sed 's/.*: //' /tmp/log
dd if=/dev/urandom of=$thin bs=64k count=32 oflag=direct 2>/dev/null
try blkdiscard $thin
cmp -n 2097152 $thin /dev/zero && echo "reads as zeroes"
END
seen=$(in_guest "$tmp/job" loop dm-thin-pool)
expect "dm-thin" "$seen" \
"new: blocks 0/1024, maximum of write-zeroes 0
blkdiscard -z: blocks 512/1024
blkdiscard: blocks 0/1024
fallocate --keep-size --zero-range --length 1M: blocks 16/1024
fails: fallocate --punch-hole --length 1M: blocks 16/1024
keep size mode is unsupported
blkdiscard: blocks 0/1024
reads as zeroes"
