#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=420 full
# guest: kernel=7.3 timeout=420 full
# A device by nbd.ko under load that is verified: its process is killed twenty times, and frozen, and
# so is the server; /run is lost; it is removed while requests wait for a server, and below another
# device; and again and again.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
via=nbd
begin_server

nothing_left() {
	[ ! -e $state ] && [ ! -e $node ] && [ "$(cat "/sys/block/$disk/size")" -eq 0 ]
}

attach
begin_load
for ((i = 0; i < 20; i++)); do
	kill_attached
	attach
	goes_on "the load after death $i"
done
echo "it freezes, and the server does"
for pid in "$(attached_pid)" "$server_pid"; do
	stop_all_threads "$pid"
	kill -CONT "$pid"
	goes_on "the load after the freeze"
done
touch "$tmp/stop.killed"
kill_process "$server_pid"
restart_server
goes_on "the load with another server"
end_load
cmp -n $((64 << 20)) $node "$tmp/disk"

echo "/run is lost, the disk is not, whatever driver would be the first"
kill_attached
was=$disk
rm -r /run/rtrs/attach
modprobe -q ublk_drv || true
via=auto
attach
via=nbd
[ "$disk" = "$was" ] || fail "it is another disk, $disk, and not $was"

echo "another device is on it"
modprobe dm_mod
echo "0 $((64 << 11)) linear $node 0" | dmsetup create over
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep -q "/dev/$disk: device /dev/dm-[0-9]* (over) is on it" "$tmp/err" ||
	fail "the device is not named: $(cat "$tmp/err")"
dmsetup remove over

echo "by force, while requests wait for a server"
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

echo "again and again"
held=$(descriptors "$server_pid")
for ((i = 0; i < 20; i++)); do
	attach
	"$RTRS_DETACH" disk0
done
wait_until "the end of the disk" nothing_left
[ "$(descriptors "$server_pid")" -le "$held" ] || fail "the server holds descriptors"
[ -z "$(ls /run/rtrs/attach)" ] || fail "files are left: $(ls /run/rtrs/attach)"
