#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=120
# An export as a device by rtrs-attach and nbd.ko: made, used, and gone.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
RTRS_ATTACH=$top_builddir/rtrs-attach
[ -x "$RTRS_ATTACH" ] || skip "rtrs-attach is not built"

truncate -s 64M "$tmp/disk"
start_server disk="$tmp/disk"
state=/run/rtrs/attach/disk0

node=$("$RTRS_ATTACH" "127.0.0.1:$server_port/disk" disk0)
[ "$node" = /dev/rtrs/disk0 ] || fail "the node is '$node'"
[ "$(blockdev --getsize64 "$node")" -eq $((64 << 20)) ] || fail "the size is another one"
fio --name=verify --filename="$node" --rw=randwrite --bs=4k --size=8M --iodepth=16 \
	--ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 >"$tmp/fio.log" ||
	{ cat "$tmp/fio.log"; fail "fio found other data"; }
mkfs.ext4 -q "$node"
mkdir "$tmp/mnt"
mount "$node" "$tmp/mnt"
cp -r "$top_srcdir/src/nbd" "$tmp/mnt"
umount "$tmp/mnt"
fsck.ext4 -f -n "$node"
# What the device got is in the file.
fsck.ext4 -f -n "$tmp/disk"

kill "$(sed -n 's/^pid=//p' $state)"
wait_until "the end of the device" test ! -e $state
[ ! -e /dev/rtrs/disk0 ] || fail "the node is left"
[ "$(cat /sys/block/nbd0/size)" -eq 0 ] || fail "/dev/nbd0 is left"
