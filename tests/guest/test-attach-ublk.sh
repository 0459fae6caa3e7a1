#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=600
# guest: kernel=7.3 timeout=600 full
# An export as a device by rtrs-attach and ublk_drv: what the disk is, its process killed twenty
# times under load that is verified and stopped ten times, and the server killed, and both; grown,
# and removed in each way.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_attach
requires_server
modprobe -q ublk_drv || skip "this kernel has no ublk_drv"

state=/run/rtrs/attach/disk0
node=/dev/rtrs/disk0
cleanup_fn end

end() {
	touch "$tmp/stop"
	[ -z "$load" ] || wait "$load" || true
	! mountpoint -q "$tmp/mnt" || umount "$tmp/mnt"
	"$RTRS_DETACH" --all || "$RTRS_DETACH" --all --force
}

load=''
mkdir "$tmp/mnt"
truncate -s 64M "$tmp/disk"
start_server disk="$tmp/disk"

attach() {
	[ "$("$RTRS_ATTACH" "$@" "127.0.0.1:$server_port/disk" disk0)" = $node ] ||
		fail "no $node"
	disk=$(sed -n 's/^disk=//p' $state)
}

restart_server() {
	start_server --listen "tcp://127.0.0.1:$server_port" disk="$tmp/disk"
}

attached_pid() {
	sed -n 's/^pid=//p' $state
}

# It is no child of this script.
kill_attached() {
	local pid

	pid=$(attached_pid)
	kill -KILL "$pid"
	wait_until "the end of process $pid" process_ended "$pid"
}

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

begin_load() {
	rm -f "$tmp/stop" "$tmp/stop.turns" "$tmp/stop.killed"
	"$top_srcdir/tests/guest/disk-load.py" $node "$tmp/stop" &
	load=$!
	wait_until "the load" test -s "$tmp/stop.turns"
}

end_load() {
	touch "$tmp/stop"
	wait "$load" || fail "an error, or other data, at the disk"
	load=''
}

goes_on() {
	load_goes_on "$1" "$tmp/stop"
}

echo "what the disk is"
attach --queues 2
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

echo "the process is killed"
begin_load
for ((i = 0; i < 20; i++)); do
	kill_attached
	attach
	goes_on "the load after death $i"
done
echo "it is stopped, and another one takes over"
for ((i = 0; i < 10; i++)); do
	kill "$(attached_pid)"
	wait_until "the end of the process" sh -c "! kill -0 $(attached_pid)"
	[ -e "/sys/block/$disk" ] || fail "the disk has gone"
	attach
	goes_on "the load after stop $i"
done
echo "the server is killed; it freezes; it is killed together with the process"
touch "$tmp/stop.killed"
kill_process "$server_pid"
restart_server
goes_on "the load with another server"
stop_all_threads "$server_pid"
kill -CONT "$server_pid"
goes_on "the load after the freeze"
kill_attached
kill_process "$server_pid"
"$RTRS_ATTACH" "127.0.0.1:$server_port/disk" disk0 &
attacher=$!
restart_server
wait $attacher || fail "no process has taken the disk over"
goes_on "the load after both"
end_load
cmp -n $((64 << 20)) $node "$tmp/disk"

echo "in use; by force while the server is away; without a process"
mount -o ro $node "$tmp/mnt" || { mkfs.ext4 -q -F $node && mount $node "$tmp/mnt"; }
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep -q "/dev/$disk: mounted at $tmp/mnt" "$tmp/err" ||
	fail "the user is not named: $(cat "$tmp/err")"
umount "$tmp/mnt"
kill_process "$server_pid"
dd if=$node of=/dev/null bs=4k count=1 iflag=direct &
reader=$!
in_flight() {
	[ "$(awk '{ print $9 }' "/sys/block/$disk/stat")" -gt 0 ]
}
wait_until "a request that waits" in_flight
"$RTRS_DETACH" --force disk0
must_fail wait $reader
wait_until "the end of the disk" nothing_left
restart_server
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
size_is() {
	[ "$(blockdev --getsize64 $node)" -eq "$1" ]
}
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
held=$(ls "/proc/$server_pid/fd" | wc -l)
for ((i = 0; i < 20; i++)); do
	attach
	"$RTRS_DETACH" disk0
done
wait_until "the end of the disk" nothing_left
[ "$(ls "/proc/$server_pid/fd" | wc -l)" -le "$held" ] || fail "the server holds descriptors"
