#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=600
# guest: kernel=7.3 timeout=600 full
# An export as a device by rtrs-attach and ublk_drv: what the disk is; under load that is verified
# its process stopped, and process and server killed and frozen, a few times (test-attach-kills.sh:
# many); grown, and removed in each way.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
. "$top_srcdir/tests/guest/attach-kills.sh"
modprobe -q ublk_drv || skip "this kernel has no ublk_drv"
# It is the first choice.
via=auto
begin_server

# The driver has no device, and this host no node.
nothing_left() {
	[ ! -e $state ] && [ ! -e $node ] && [ -z "$(ls /sys/class/ublk-char)" ] &&
		[ -z "$(cd /dev && ls | grep '^ublk[bc]')" ]
}

# has FILE VALUE: of the disk's queue.
has() {
	[ "$(cat "/sys/block/$disk/queue/$1")" = "$2" ] ||
		fail "$1 of $disk is $(cat "/sys/block/$disk/queue/$1"), not $2"
}

echo "what the disk is"
keys=(--queues 2)
attach
keys=()
case $disk in ublkb*) ;; *) fail "it is by another driver: $disk" ;; esac
[ "$(blockdev --getsize64 $node)" -eq $((64 << 20)) ] || fail "another size"
has logical_block_size 512
has physical_block_size 4096
has write_cache "write back"
has fua 1
has max_hw_sectors_kb 128
[ "$(ls "/sys/block/$disk/mq" | wc -l)" -eq 2 ] || fail "it has not two queues"
[ "$(cat "/sys/block/$disk/queue/discard_max_bytes")" -gt 0 ] || fail "no discards"
[ "$(cat "/sys/block/$disk/queue/write_zeroes_max_bytes")" -gt 0 ] || fail "no zeroes"

blocks_at_most() {
	[ "$(stat -c %b "$tmp/disk")" -le "$1" ]
}

dd if=/dev/urandom of=$node bs=1M count=16 oflag=direct status=none
before=$(stat -c %b "$tmp/disk")
blkdiscard -o $((4 << 20)) -l $((8 << 20)) $node
wait_until "fewer blocks" blocks_at_most $((before - (8 << 11)))
cmp -n $((64 << 20)) $node "$tmp/disk"
blkdiscard -z -o $((1 << 20)) -l $((1 << 20)) $node
cmp -i $((1 << 20)) -n $((1 << 20)) "$tmp/disk" /dev/zero
cmp -n $((64 << 20)) $node "$tmp/disk"

echo "a file system"
mkfs.ext4 -q -F $node
mount $node "$tmp/mnt"
cp -r "$top_srcdir/src" "$tmp/mnt"
sync
rm -r "$tmp/mnt/src/rtrs-server"
fstrim "$tmp/mnt"
diff -r "$top_srcdir/src/nbd" "$tmp/mnt/src/nbd"
umount "$tmp/mnt"
fsck.ext4 -f -n "$tmp/disk"

echo "the process and the server are killed, and frozen"
begin_load
syncs_may_fail
kill_processes 5
kill_servers 3 kill_process
freeze_each 1
kill_both kill_process
echo "the process is stopped, and another one takes over"
for ((i = 0; i < 10; i++)); do
	pid=$(attached_pid)
	kill "$pid"
	wait_until "the end of the process" process_ended "$pid"
	[ -e "/sys/block/$disk" ] || fail "the disk has gone"
	attach
	loads_go_on "stop $i"
done
end_loads
cmp -n $((64 << 20)) $node "$tmp/disk"

echo "in use; by force while the server is away; without a process"
mount -o ro $node "$tmp/mnt" || { mkfs.ext4 -q -F $node && mount $node "$tmp/mnt"; }
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep -q "/dev/$disk: mounted at $tmp/mnt" "$tmp/err" ||
	fail "the user is not named: $(cat "$tmp/err")"
umount "$tmp/mnt"
force_without_server
attach
kill_attached
"$RTRS_DETACH" disk0
wait_until "the end of the disk" nothing_left

echo "/run is lost, the disk is not"
attach
kill_attached
was=$disk
rm -r /run/rtrs/attach
attach
[ "$disk" = "$was" ] || fail "it is another disk, $disk, and not $was"

echo "the export grows"
truncate -s 96M "$tmp/disk"
if kernel_preempts; then	# since 6.16
	wait_until "the new size" size_is $((96 << 20))
	dd if=/dev/urandom of=$node bs=1M seek=80 count=16 oflag=direct status=none
	cmp -n $((96 << 20)) $node "$tmp/disk"
fi
"$RTRS_DETACH" disk0
attach
size_is $((96 << 20)) || fail "it is as large as it was"
"$RTRS_DETACH" disk0
wait_until "the end of the disk" nothing_left

echo "again and again"
held=$(descriptors "$server_pid")
for ((i = 0; i < 20; i++)); do
	attach
	"$RTRS_DETACH" disk0
done
wait_until "the end of the disk" nothing_left
[ "$(descriptors "$server_pid")" -le "$held" ] || fail "the server holds descriptors"
