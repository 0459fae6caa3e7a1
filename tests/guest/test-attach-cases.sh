#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=300 full
# What a user of a block device may expect (doc/devices.md), of the devices of rtrs-attach by both
# drivers: sectors and parts of them, the end of the disk, discards and zeroes, flushes that reach
# the storage, errors of the storage and their end, and a device that is read-only; and what a name
# may be.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
requires losetup --version
requires dmsetup version
modprobe -a loop dm_mod nbd ublk_drv ext4

sectors=$((64 << 11)) bad_at=$((20 << 11))
loop=$(losetup --find --show --direct-io=off "$tmp/disk")
cleanup_fn losetup -d "$loop"
whole="0 $sectors linear $loop 0"
broken="0 $bad_at linear $loop 0
$bad_at 8 error
$((bad_at + 8)) $((sectors - bad_at - 8)) linear $loop $((bad_at + 8))"
dmsetup create store --table "$whole"
cleanup_fn dmsetup remove store
# Nobody makes links here.
store=/dev/dm-$(dmsetup info -c --noheadings -o minor store)

# becomes TABLE: of the storage, while it is in use.
becomes() {
	dmsetup suspend store --noflush
	dmsetup reload store --table "$1"
	dmsetup resume store
}

# Of the driver of the storage: requests to flush.
flushes() {
	awk '{ print $16 }' "/sys/block/${loop#/dev/}/stat"
}

# flushed COMMAND...: flushes the storage.
flushed() {
	local before

	before=$(flushes)
	"$@"
	[ "$(flushes)" -gt "$before" ] || fail "the storage was not flushed by: $*"
}

# block OPTION...: dd of the eight sectors that break.
block() {
	dd bs=4k count=1 status=none "$@"
}

errors() {
	block if=/dev/urandom of="$tmp/block"
	block if="$tmp/block" of=$node seek=$((bad_at / 8)) oflag=direct
	becomes "$broken"
	must_fail block if=$node of=/dev/null skip=$((bad_at / 8)) iflag=direct
	must_fail block if=/dev/zero of=$node seek=$((bad_at / 8)) oflag=direct
	block if=$node of=/dev/null skip=$((bad_at / 8 - 1)) iflag=direct
	block if=/dev/zero of=$node seek=$((bad_at / 8 + 1)) oflag=direct
	becomes "$whole"
	block if=$node skip=$((bad_at / 8)) iflag=direct | cmp - "$tmp/block"
	block if=/dev/zero of=$node seek=$((bad_at / 8)) oflag=direct
	block if=$node skip=$((bad_at / 8)) iflag=direct | cmp -n 4096 - /dev/zero
}

gone() {
	[ "$(cat "/sys/block/$disk/size" 2>/dev/null || echo 0)" -eq 0 ]
}

# The kernel keeps the name and the export, whatever the state says.
names() {
	disk=$("$RTRS_ATTACH" --list --json | python3 -c "
import json, sys
print(*[one['disk'] for one in json.load(sys.stdin) if one['name'] == '$long'])")
	sed -i 's/^export=.*/export=other/' "/run/rtrs/attach/$long"
	must_fail "$RTRS_DETACH" "$long" 2>"$tmp/err"
	cat "$tmp/err"
	grep "/dev/$disk is of another export than /run/rtrs/attach/$long has: remove" "$tmp/err"
	rm "/run/rtrs/attach/$long"
	"$RTRS_DETACH" "$long"
	wait_until "the end of $disk" gone
}

cases() {
	via=$1
	echo "by $via"
	attach
	"$top_srcdir/tests/guest/disk-cases.py" $node
	cmp $node "$store"
	echo "flushes"
	flushed dd if=/dev/zero of=$node bs=4k count=1 conv=fsync status=none
	flushed block if=/dev/zero of=$node oflag=direct,dsync
	mkfs.ext4 -q -F $node
	mount $node "$tmp/mnt"
	echo data >"$tmp/mnt/file"
	flushed sync "$tmp/mnt/file"
	echo more >>"$tmp/mnt/file"
	flushed umount "$tmp/mnt"
	fsck.ext4 -f -n "$store"
	echo "errors"
	errors
	"$RTRS_DETACH" disk0
	echo "read-only"
	keys=(mode=ro)
	attach
	"$top_srcdir/tests/guest/disk-cases.py" --read-only $node
	"$RTRS_DETACH" disk0
	keys=()
	echo "the longest names"
	"$RTRS_ATTACH" --via=$via "$host:$server_port/$export" "$long"
	names
}

long=$(printf '%063d' 0) export=$(printf '%0254d' 0)
truncate -s 8M "$tmp/other"
exports=("disk=$store,direct" "$export=$tmp/other")
begin_server
cases nbd
cases ublk
