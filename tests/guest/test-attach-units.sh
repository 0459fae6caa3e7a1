#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=300 full
# rtrs-attach@NAME.service under systemd: a mounted file system over a kill, a restart and a stop of
# the unit, rtrs-detach, and the order at stop.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/units.sh"
requires_attach; requires_server

# What make install does, as far as these units go.
sbindir=$(value rtrs-attach@.service '\(.*\)/rtrs-attach ')
etc=$(value rtrs-server.service '.*--config=\(.*\)/rtrs-server.conf')
mkdir -p "$sbindir" "$etc/rtrs"
cp "$RTRS_SERVER" "$RTRS_ATTACH" "$top_builddir/rtrsctl" "$sbindir"
ln -s rtrs-attach "$sbindir/rtrs-detach"
copy_units
mkdir -p /etc/sysusers.d /etc/tmpfiles.d
cp "$top_srcdir/contrib/systemd/rtrs-server.sysusers" /etc/sysusers.d/rtrs-server.conf
sed 's,@sysconfdir@,/etc,' "$top_srcdir/contrib/systemd/rtrs-server.tmpfiles" \
	>/etc/tmpfiles.d/rtrs-server.conf
systemd-sysusers rtrs-server.conf
systemd-tmpfiles --create rtrs-server.conf

# Each unit tells its end, in order.
for unit in client rtrs-attach@ rtrs-server; do
	mkdir "/etc/systemd/system/$unit.service.d"
	printf '[Service]\nExecStopPost=+sh -c "echo %%n >>/run/ended"\n' \
		>"/etc/systemd/system/$unit.service.d/ended.conf"
done
modprobe nbd nbds_max=1
modprobe -q ublk_drv || true
start_systemd

attach() { in_units "$sbindir/rtrs-attach" "$@"; }
detach() { in_units "$sbindir/rtrs-detach" "$@"; }
unit=rtrs-attach@disk0.service
is() { [ "$(systemctl show -P "$1" $unit)" = "$2" ]; }
listed() { attach --list | grep "^disk0 .* $1 "; }
# What is written is on the disk: nobody has seen an error.
writes() {
	head -c 3M /dev/urandom >"$tmp/mnt/file"
	sync "$tmp/mnt/file"
}

truncate -s 64M /var/lib/rtrs-server/file.img
chown rtrs-server /var/lib/rtrs-server/file.img
printf '%s\n' '[server]' 'listen = tcp://127.0.0.1:1234' '[export "file"]' \
	'path = /var/lib/rtrs-server/file.img' >"$etc/rtrs-server.conf"
printf '%s\n' 'server = 127.0.0.1' 'export = file' >"$etc/rtrs/disk0.conf"
mkdir "$tmp/mnt"

# The unit starts before its server, and waits.
systemctl start --no-block $unit
waits() { journalctl --no-pager -u $unit | grep 'starting without'; }
wait_until "the unit without a server" waits
must_start rtrs-server.service
wait_until "the device" is ActiveState active
[ -b /dev/rtrs/disk0 ] || fail "there is no device"
mkfs.ext4 -q /dev/rtrs/disk0
cat >/etc/systemd/system/client.service <<END
[Unit]
After=remote-fs-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mount /dev/rtrs/disk0 $tmp/mnt
ExecStop=umount $tmp/mnt
END
must_start client.service
writes

# Killed: another process takes the device over.
systemctl kill --signal=KILL $unit
wait_until "the next process" is NRestarts 1
wait_until "the device" is ActiveState active
writes
# Restarted, as for an update.
before=$(systemctl show -P MainPID $unit)
systemctl restart $unit
must_fail is MainPID "$before"
writes
# Stopped while it is in use: the device waits for the next start.
systemctl stop $unit
is ActiveState failed
listed "waits for rtrs-attach"
must_start $unit
writes
# A reload takes a change of the file, and a mistake changes nothing.
echo 'io-timeout = 60' >>"$etc/rtrs/disk0.conf"
systemctl reload $unit
echo 'io-timeout = soon' >>"$etc/rtrs/disk0.conf"
must_fail systemctl reload $unit
sed -i '$d' "$etc/rtrs/disk0.conf"

# Detached: the unit is not started again.
must_fail detach disk0 2>"$tmp/err"
grep "mounted at $tmp/mnt" "$tmp/err"
systemctl stop client.service
restarts=$(systemctl show -P NRestarts $unit)
detach disk0
wait_until "the end of the unit" is ActiveState inactive
is NRestarts "$restarts"
[ ! -e /dev/rtrs/disk0 ] || fail "the device is left"
must_start $unit
# Stopped while nobody uses it: the device goes.
systemctl stop $unit
is ActiveState inactive
[ ! -e /dev/rtrs/disk0 ] || fail "the device is left"
# A mistake in the file ends the unit for good.
echo 'colour = red' >>"$etc/rtrs/disk0.conf"
must_fail systemctl start $unit
is ExecMainStatus 2
is ActiveState failed
systemctl reset-failed $unit
sed -i '$d' "$etc/rtrs/disk0.conf"

# At stop: what mounts file systems of the network, then the device, then the server.
must_start $unit
must_start client.service
writes
: >/run/ended
systemctl isolate rtrs-test.target
all_ended() { [ "$(wc -l </run/ended)" -eq 3 ]; }
wait_until "the end of all units" all_ended
diff -u <(printf '%s\n' client.service $unit rtrs-server.service) /run/ended
must_fail systemctl is-failed client.service $unit rtrs-server.service
[ ! -e /dev/rtrs/disk0 ] || fail "the device is left"
fsck.ext4 -f -n /var/lib/rtrs-server/file.img
