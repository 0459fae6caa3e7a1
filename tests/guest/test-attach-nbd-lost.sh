#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=240 full
# guest: kernel=6.1 timeout=600 full
# guest: kernel=7.3 timeout=600 full
# A device by nbd.ko whose /run is lost; that is below another device; that is removed while
# requests wait for a server; and that comes and goes.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
via=nbd
begin_server

nothing_left() {
	[ ! -e $state ] && [ ! -e $node ] && [ "$(cat "/sys/block/$disk/size")" -eq 0 ]
}

attach
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
force_without_server

echo "again and again"
held=$(descriptors "$server_pid")
for ((i = 0; i < 20; i++)); do
	attach
	"$RTRS_DETACH" disk0
done
wait_until "the end of the disk" nothing_left
[ "$(descriptors "$server_pid")" -le "$held" ] || fail "the server holds descriptors"
[ -z "$(ls /run/rtrs/attach)" ] || fail "files are left: $(ls /run/rtrs/attach)"
