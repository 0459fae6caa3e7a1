#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=400 full
# The units under systemd, which runs as process 1 of a namespace: IO over RDMA, tcp and a unix
# socket to a file and a block device, reload with and without a mistake, kills of server and
# gateway, boot in any order, and the order at stop.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/units.sh"
requires_server; requires_plugin; requires_gateway
requires nbdcopy --version

# What make install does, as far as units go, to the places that units name.
sbindir=$(value rtrs-server.service '\(.*\)/rtrs-server ')
etc=$(value rtrs-server.service '.*--config=\(.*\)/rtrs-server.conf')
bindir=$(value rtrs-nbd@.service '\(.*\)/rtrs-nbd ')
plugindir=$(value nbdkit-rtrs@.service '.* \(/.*\)/nbdkit-rtrs-plugin.so')
mkdir -p "$sbindir" "$bindir" "$plugindir" "$etc/rtrs" "$etc/rtrs-server"
cp "$RTRS_SERVER" "$top_builddir/rtrsctl" "$sbindir"
cp "$RTRS_NBD" "$bindir"
cp "$RTRS_PLUGIN" "$plugindir"
copy_units
mkdir -p /etc/sysusers.d /etc/tmpfiles.d
cp "$top_srcdir/contrib/systemd/rtrs-server.sysusers" /etc/sysusers.d/rtrs-server.conf
sed 's,@sysconfdir@,/etc,' "$top_srcdir/contrib/systemd/rtrs-server.tmpfiles" \
	>/etc/tmpfiles.d/rtrs-server.conf
cp "$top_srcdir/contrib/systemd/gateway.sysusers" /etc/sysusers.d/rtrs-nbd.conf
systemd-sysusers rtrs-server.conf rtrs-nbd.conf
systemd-tmpfiles --create rtrs-server.conf

# Each unit tells its end, in order.
for unit in client rtrs-server rtrs-server@ rtrs-nbd@; do
	mkdir "/etc/systemd/system/$unit.service.d"
	printf '[Service]\nExecStopPost=+sh -c "echo %%n >>/run/ended"\n' \
		>"/etc/systemd/system/$unit.service.d/ended.conf"
done

start_systemd

# The file, the block device, and how each gateway reaches them.  udev would give the device to the
# group.
truncate -s 8M /var/lib/rtrs-server/file.img "$tmp/block.img"
chown rtrs-server /var/lib/rtrs-server/file.img
modprobe loop
loop=$(losetup --find --show "$tmp/block.img")
cleanup_fn losetup --detach "$loop"
chgrp disk "$loop"
chmod 660 "$loop"
cat >"$etc/rtrs-server.conf" <<END
[server]
listen = rdma://$ip4:1234
listen = tcp://127.0.0.1:1234
listen = unix:/run/rtrs-server/rtrs.sock
[export "file"]
path = /var/lib/rtrs-server/file.img
[export "block"]
path = $loop
direct = yes
END
mkdir -p /etc/systemd/system/rtrs-server.service.d
printf '[Service]\nSupplementaryGroups=disk\nDeviceAllow=%s rw\n' "$loop" \
	>/etc/systemd/system/rtrs-server.service.d/block.conf
systemctl daemon-reload
must_start rtrs-server.service
[ "$(systemctl show -P User rtrs-server)" = rtrs-server ]
systemctl show -P DeviceAllow rtrs-server | grep -F "$loop rw"
# The process has no capability, and the unit lets the server filter its own calls.
pid=$(systemctl show -P MainPID rtrs-server)
# shellcheck disable=SC2016	# the shell in there expands
status=$(nsenter --target "$one" --pid --mount sh -c 'cat "/proc/$1/task/"*/status' sh "$pid")
for line in CapEff:.0000000000000000 CapPrm:.0000000000000000 NoNewPrivs:.1 Seccomp:.2; do
	grep -x "$line" <<<"$status" || fail "a server of the unit without $line"
	[ "$(grep -c "^${line%%:*}:" <<<"$status")" -eq "$(grep -c -x "$line" <<<"$status")" ]
done
journal_has() { journalctl --no-pager -u rtrs-server | grep "$1"; }
journal_has 'system calls are filtered: --seccomp=on$'
printf '%s\n' "server = rdma://$ip4" "export = block" >"$etc/rtrs/rdma.conf"
printf '%s\n' "server = unix:/run/rtrs-server/rtrs.sock" "server-uid = rtrs-server" \
	"export = file" \
	>"$etc/rtrs/local.conf"

# goes_through NAME FILE: an image goes to the disk NAME, and is found in the storage.
goes_through() {
	head -c 8M /dev/urandom >"$tmp/image"
	timeout "$TIMEOUT_S" nbdcopy --flush "$tmp/image" "nbd+unix:///?socket=/run/nbd/$1.sock" ||
		{ journalctl --no-pager -n 60; fail "no IO to $1"; }
	cmp "$tmp/image" "$2"
}
# The first client starts the service.
must_start rtrs-nbd@rdma.socket nbdkit-rtrs@local.socket
goes_through rdma "$loop"
goes_through local /var/lib/rtrs-server/file.img
systemctl is-active rtrs-nbd@rdma.service nbdkit-rtrs@local.service
[ "$(stat -c '%G %a' /run/nbd/rdma.sock)" = 'rtrs 660' ]

# One file, one place, two gateways.
must_start rtrs-nbd@local.socket
must_fail systemctl is-active nbdkit-rtrs@local.socket
goes_through local /var/lib/rtrs-server/file.img
systemctl is-active rtrs-nbd@local.service

# What the doctor says of all this: the device, the units and their users; and then of files with
# which no unit could start.
doctor() {
	nsenter --target "$one" --pid --mount env -u RUNTIME_DIRECTORY "$sbindir/rtrsctl" doctor >"$tmp/doctor" || true
	cat "$tmp/doctor"
}
says() {
	grep -q -E -- "$1" "$tmp/doctor" || fail "the doctor does not say: $1"
}
doctor
says '^ok   rdma: rxe[0-9] can RDMA_WRITE_WITH_IMM; has memory windows of type 1, has of type 2; can LOCAL_INV; [0-9]+ elements'
says '^warn rtrs-server .*: unit: rtrs-server.service runs, and will not after a reboot'
says '^ok   rtrs-server .*: user: user [0-9]+ \(rtrs-server\)$'
says '^ok   rtrs-server .*: memlock: no limit'
says '^ok   rtrs-server .*: image: file=/var/lib/rtrs-server/file.img: user [0-9]+ .rtrs-server. may read and write it'
says '^ok   rtrs-nbd rdma: configuration: right'
says '^ok   rtrs-nbd rdma: user: user [0-9]+ \(rtrs-nbd\)$'
says '^ok   rtrs-nbd rdma: mtu: .*: 1024 bytes of data in a packet of RDMA'
says '^ok   rtrs-nbd .*: peer: .*: the other end has all of this version'
cat >"$etc/rtrs-server/bad.conf" <<END
[server]
listen = tcp://127.0.0.1:1240
tls-psk = $etc/rtrs-server/bad.psk
[export "home"]
path = /root/home.img
[export "tmp"]
path = /tmp/tmp.img
[export "device"]
path = $loop
[export "others"]
path = /var/lib/rtrs-server/others.img
END
(umask 022; "$top_builddir/rtrs-psk" gw1 >"$etc/rtrs-server/bad.psk")
(umask 077; truncate -s 1M /root/home.img /tmp/tmp.img /var/lib/rtrs-server/others.img)
printf '%s\n' "server = 127.0.0.1:1" "export = file" "tls-psk = $etc/rtrs/bad.psk" \
	>"$etc/rtrs/bad.conf"
(umask 077; "$top_builddir/rtrs-psk" gw2 >"$etc/rtrs/bad.psk")
echo '# another line' >>/etc/systemd/system/rtrs-server.service
doctor
bad="^bad  $etc/rtrs-server/bad.conf"
says "$bad: image: home: /root/home.img: ProtectHome= of rtrs-server@bad.service hides it"
says "$bad: image: tmp: /tmp/tmp.img: PrivateTmp= of rtrs-server@bad.service hides it"
says "$bad: image: device: $loop: rtrs-server@bad.service may not open this device: DeviceAllow="
says "$bad: image: others=/var/.*: Permission denied: user [0-9]+ \(rtrs-server\) may not write it, .* user 0 .* 0600"
says "$bad: key: tls-psk=.*/bad.psk: expected mode 0600, not 0644"
says "^bad  $etc/rtrs/bad.conf: key: tls-psk=.*: Permission denied"
says "^warn $etc/rtrs/bad.conf: path: .* does not take a connection: Connection refused"
says '^warn rtrs-server .*: unit: the files of rtrs-server.service have changed'
# Without D-Bus systemd answers root alone.
nsenter --target "$one" --pid --mount setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$sbindir/rtrsctl" doctor >"$tmp/doctor" || true
says "^warn $etc/rtrs-server/bad.conf: unit: systemctl does not answer: run rtrsctl doctor as root"
systemctl daemon-reload
rm "$etc/rtrs-server/bad".* "$etc/rtrs/bad".*
# A container that has the device of the kernel, and not its files.
nsenter --target "$one" --pid --mount env -u RUNTIME_DIRECTORY unshare --mount sh -c \
	"mount -t tmpfs none /dev/infiniband; '$sbindir/rtrsctl' doctor" >"$tmp/doctor" || true
says '^warn rdma: .*rxe[0-9].* cannot'
says '^warn rdma: /dev/infiniband/rdma_cm: No such file'

# exports: those that the server has now.
exports() {
	"$sbindir/rtrsctl" --socket "$(echo /run/rtrs-server/server-*.sock)" list |
		sed -n 's/^ *export *//p' |
		sort | tr '\n' ' '
}
has_exports() {
	[ "$(exports)" = "$1" ]
}
exports
wait_until "two exports" has_exports 'block file '
printf '[export "more"]\npath = mem:8M\n' >>"$etc/rtrs-server.conf"
systemctl reload rtrs-server
has_exports 'block file more '
# A mistake is told by systemctl, and changes nothing.  An address that cannot be had, too.
cp "$etc/rtrs-server.conf" "$tmp/good.conf"
printf '[export "worse"]\npath = mem:8M\nmode = wr\n' >>"$etc/rtrs-server.conf"
must_fail systemctl reload rtrs-server
journalctl --no-pager -u rtrs-server | grep -F "'wr'"
has_exports 'block file more '
sed 's,^listen = tcp.*,listen = tcp://192.0.2.99:1234,' "$tmp/good.conf" >"$etc/rtrs-server.conf"
must_fail systemctl reload rtrs-server
cp "$tmp/good.conf" "$etc/rtrs-server.conf"
# A gateway without keys has nothing to read again, and that is no failure.
systemctl reload rtrs-nbd@local

# Killed, both come again: the server is a pause for its clients, and the socket of a gateway stays.
restarts() {
	[ "$(systemctl show -P NRestarts "$1")" -ge 1 ] && systemctl is-active "$1"
}
systemctl kill --signal=KILL rtrs-server
goes_through rdma "$loop"
wait_until "the next server" restarts rtrs-server.service
systemctl kill --signal=KILL rtrs-nbd@rdma.service
goes_through rdma "$loop"

# A gateway that boots before its server is ready, and its client waits.
printf '%s\n' 'server = 127.0.0.1:4321' 'export = fast' >"$etc/rtrs/early.conf"
must_start rtrs-nbd@early.service
timeout "$TIMEOUT_S" nbdcopy --flush "$tmp/image" "nbd+unix:///?socket=/run/nbd/early.sock" &
early=$!
waits() { journalctl --no-pager -u rtrs-nbd@early | grep 'starting without'; }
wait_until "a gateway without its server" waits
printf '[server]\nlisten = tcp://127.0.0.1:4321\n[export "fast"]\npath = mem:8M\n' \
	>"$etc/rtrs-server/fast.conf"
must_start rtrs-server@fast.service
expect_exit $early 0
[ "$(systemctl show -P NRestarts rtrs-nbd@early)" -eq 0 ]
systemctl stop rtrs-nbd@early.socket rtrs-nbd@early.service rtrs-server@fast.service

# Another server, with an address of its own.
printf '[server]\nlisten = tcp://127.0.0.1:4321\ntls-psk = %s\n[export "fast"]\npath = mem:8M\n' \
	"$etc/rtrs-server/fast.psk" >"$etc/rtrs-server/fast.conf"
# key NAME FILE USER: a key for the program of USER.
key() {
	"$top_builddir/rtrs-psk" "$1" | install -m 600 -o "$3" /dev/stdin "$2"
}
key gw1 "$etc/rtrs/fast.psk" rtrs-nbd
install -m 600 -o rtrs-server "$etc/rtrs/fast.psk" "$etc/rtrs-server/fast.psk"
must_start rtrs-server@fast.service
sockets=(/run/rtrs-server-fast/server-*.sock)
[ -S "${sockets[0]}" ]

# A gateway with TLS under its unit, and another key without a pause.
printf '%s\n' 'server = 127.0.0.1:4321' 'export = fast' "tls-psk = $etc/rtrs/fast.psk" \
	>"$etc/rtrs/fast.conf"
comes_back() {
	head -c 8M /dev/urandom >"$tmp/image"
	timeout "$TIMEOUT_S" nbdcopy --flush "$tmp/image" \
		"nbd+unix:///?socket=/run/nbd/fast.sock" ||
		{ journalctl --no-pager -n 60; fail "no IO to fast"; }
	timeout "$TIMEOUT_S" nbdcopy "nbd+unix:///?socket=/run/nbd/fast.sock" - | cmp - "$tmp/image"
}
must_start rtrs-nbd@fast.socket
comes_back
"$sbindir/rtrsctl" --socket "${sockets[0]}" clients | grep -w psk:gw1
key gw1/b "$tmp/next.psk" root
cat "$tmp/next.psk" >>"$etc/rtrs-server/fast.psk"
systemctl reload rtrs-server@fast
install -m 600 -o rtrs-nbd "$tmp/next.psk" "$etc/rtrs/fast.psk"
systemctl reload rtrs-nbd@fast
install -m 600 -o rtrs-server "$tmp/next.psk" "$etc/rtrs-server/fast.psk"
systemctl reload rtrs-server@fast
journalctl --no-pager -u rtrs-server@fast | grep -e '-key gw1 '
comes_back
[ "$(systemctl show -P NRestarts rtrs-nbd@fast)" -eq 0 ]

# A key that stays root's is a credential of the unit.
install -m 600 -o root "$tmp/next.psk" "$etc/rtrs/root.psk"
rm "$etc/rtrs/fast.psk"
mkdir -p /etc/systemd/system/rtrs-nbd@fast.service.d
printf '[Service]\nLoadCredential=fast.psk:%s\n' "$etc/rtrs/root.psk" \
	>/etc/systemd/system/rtrs-nbd@fast.service.d/key.conf
sed -i 's,^tls-psk.*,tls-psk = /run/credentials/rtrs-nbd@fast.service/fast.psk,' \
	"$etc/rtrs/fast.conf"
systemctl daemon-reload
systemctl stop rtrs-nbd@fast.service
must_start rtrs-nbd@fast.service
comes_back
nsenter --target "$one" --pid --mount ls -la /run/credentials/rtrs-nbd@fast.service
# A file with a mistake ends the service for good, and systemctl --failed shows it.
echo 'colour = red' >>"$etc/rtrs/fast.conf"
must_fail systemctl restart rtrs-nbd@fast.service
[ "$(systemctl show -P ExecMainStatus rtrs-nbd@fast.service)" -eq 2 ]
systemctl --failed | grep -F rtrs-nbd@fast.service
systemctl reset-failed rtrs-nbd@fast.service
must_fail systemctl is-active rtrs-nbd@fast.service
systemctl stop rtrs-nbd@fast.socket

# At stop: what mounts file systems of the network, then gateways, then servers.
head -c 8M /dev/urandom >"$tmp/last"
cat >/etc/systemd/system/client.service <<END
[Unit]
After=remote-fs-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=true
ExecStop=nbdcopy --flush $tmp/last nbd+unix:///?socket=/run/nbd/rdma.sock
END
must_start client.service
: >/run/ended
systemctl isolate rtrs-test.target
# systemctl waits for the target only.
all_ended() {
	[ "$(wc -l </run/ended)" -eq 5 ]
}
wait_until "the end of all units" all_ended
cat /run/ended
want=$(printf '%s\n' client gateway gateway server server)
[ "$(sed -e 's/^rtrs-nbd@.*/gateway/' -e 's/^rtrs-server.*/server/' -e 's/\.service$//' \
	/run/ended)" = "$want" ] ||
	fail "not in this order: $want"
must_fail systemctl is-failed client.service rtrs-nbd@rdma.service rtrs-server.service
must_fail journal_has ' denied, '
cmp "$tmp/last" "$loop"
[ ! -e /run/nbd/rdma.sock ] || fail "the socket is left"
