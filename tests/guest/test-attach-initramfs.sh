#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=3600 full
# initramfs-tools of Debian 12 and 13 with the hook of contrib/initramfs, in chroots: what the hook
# says of mistakes and of keys, and that the initramfs has the program, the modules of both drivers,
# the files of the disk, and all that the process needs when the initramfs has gone.  A machine of
# Debian 12 boots by it, its root file system on a device by ublk, with a key.  The machine writes
# while its server is killed, and powers off.  Its file system is clean, and has what was written.
#
# For one release:	tests/guest/test-attach-initramfs.sh trixie
. "$(dirname "$0")/../../build-aux/chroots.sh"
. ./tests/functions.sh
. "$top_srcdir/tests/guest/qemu.sh"
. "$top_srcdir/tests/wires.sh"
requires_attach
requires_server
requires_root
needs_chroots
[ $# -gt 0 ] || set -- bookworm trixie

# What rtrs-attach and rtrsctl are linked with, too.  Names of libraries are those of Debian 12;
# Debian 13's packages provide them.
packages=(busybox initramfs-tools iproute2 kmod systemd-sysv udev zstd libgnutls30 libhogweed6
	libibverbs1 libisal2 libjansson4 libmicrohttpd12 libncursesw6 libnl-genl-3-200 librdmacm1
	libsystemd0 liburing2)
hook=$top_builddir/contrib/initramfs/hooks/rtrs-attach
sbin=$(sed -n 's,^program=\(.*\)/rtrs-attach$,\1,p' "$hook")
etc=$(sed -n 's,^[[:space:]]*conf=\(.*\)/rtrs/\$name.conf$,\1,p' "$hook")
rules=$(sed -n 's,^copy_file rules ,,p' "$hook")
[ -n "$sbin" ] && [ -n "$etc" ] && [ -n "$rules" ] || fail "the hook has other lines"

# ---- the root file system ----

# What the machine runs.  It hears words from its second serial port.
# shellcheck disable=SC2016 # the machine's
proof='#!/bin/sh
exec </dev/ttyS1 >/dev/ttyS0 2>&1
fail() {
	echo "the machine failed: $*"
	poweroff -f
}
hear() {
	read -r word && [ "$word" = "$1" ] || fail "heard $word and not $1"
}
# As long as it takes: the test has a limit.
until_paths() {
	until rtrsctl check | grep -q " paths_up=$1\$"; do
		sleep 0.2
	done
}
write() {
	mkdir -p /data && cd /data || fail mkdir
	head -c 3000000 /dev/urandom >"$1" && sync "$1" || fail "write $1"
	sha256sum "$1" >>sums && sync sums || fail "write sums"
	echo "the machine has written $1"
}
stty -F /dev/ttyS1 raw -echo
. /proof.conf
disk=$(readlink -f /dev/rtrs/root)
case $disk in
/dev/$driver*) ;;
*) fail "the disk is $disk" ;;
esac
[ "$(findmnt -n -o SOURCE /)" -ef "$disk" ] || fail "the root is $(findmnt -n -o SOURCE /)"
write booted
hear killed
write server
[ "$paths" -eq 1 ] || {
	ip addr add 10.0.3.15/24 dev eth1 && ip link set eth1 up || fail "the second interface"
	until_paths 2
	echo "the machine has two paths"
	hear pulled
	until_paths 1
	write one-path
	hear plugged
	until_paths 2
	write two-paths
}
echo 3 >/proc/sys/vm/drop_caches
cd /data && sha256sum --quiet -c sums || fail "files are not as they were written"
echo "the machine is done"
systemctl poweroff'

# new_root SUITE: sets root, a system with the programs, the hook and what it needs.
new_root() {
	root=$tmp/$1
	fresh "$1" "$root" --include="$(IFS=,; echo "${packages[*]}")" >"$tmp/$1.log" 2>&1 \
		</dev/null || { tail -n 20 "$tmp/$1.log"; return 1; }
	mkdir -p "$root/$sbin" "$root/$etc/rtrs" "$root/${rules%/*}" \
		"$root/usr/share/initramfs-tools"/{hooks,scripts/local-top}
	cp "$RTRS_ATTACH" "$top_builddir/rtrsctl" "$root/$sbin"
	cp "$top_builddir/contrib/udev/60-rtrs-attach.rules" "$root/$rules"
	cp "$hook" "$root/usr/share/initramfs-tools/hooks"
	cp "$top_builddir/contrib/initramfs/local-top/rtrs-attach" \
		"$root/usr/share/initramfs-tools/scripts/local-top"
	echo 'RTRS_ATTACH="root"' >"$root/etc/initramfs-tools/conf.d/rtrs-attach"
	echo '/dev/rtrs/root / ext4 defaults 0 1' >"$root/etc/fstab"
	printf '%s\n' "$proof" >"$root/proof"
	chmod +x "$root/proof"
	printf '%s\n' '[Unit]' 'After=basic.target' '[Service]' 'Type=oneshot' \
		'ExecStart=/proof' >"$root/etc/systemd/system/proof.service"
	printf '%s\n' '[Unit]' 'Requires=basic.target' 'Wants=proof.service' \
		>"$root/etc/systemd/system/proof.target"
	# Its kernel's modules are those of guests.
	mkdir -p "$root/lib/modules"
	for kernel in 6.1 6.12; do
		guest_prepare $kernel
		cp -r "$guest_kernel/lib/modules/"* "$root/lib/modules"
		# What the kernel unpacks: mkinitramfs asks.
		printf 'CONFIG_RD_%s=y\n' GZIP ZSTD >"$root/boot/config-$(cat "$guest_kernel/kv")"
	done
}

# ---- the initramfs ----

# configure KEY=VALUE...: the disk of $root; its key is there, too.
configure() {
	printf '%s\n' "$@" export=root | sed 's/=/ = /' >"$root/$etc/rtrs/root.conf"
	mkdir -p "$root/$etc/rtrs/root.conf.d"
	echo "auth-psk = \"$etc/rtrs/root.psk\"" >"$root/$etc/rtrs/root.conf.d/key.conf"
}

# make_initramfs SERIES: sets guest_kernel and $tmp/initrd, and leaves what it says in $tmp/said.
make_initramfs() {
	guest_prepare "$1"
	inside "$root" mkinitramfs -o /boot/initrd "$(cat "$guest_kernel/kv")" >"$tmp/said" 2>&1 ||
		{ cat "$tmp/said"; return 1; }
	mv "$root/boot/initrd" "$tmp/initrd"
}

# What the hook says of mistakes and of keys that all may read.
refuse_mistakes() {
	configure server=10.0.2.2 colour=red
	must_fail make_initramfs 6.12
	grep "colour" "$tmp/said"
	grep "^E: rtrs-attach: $etc/rtrs/root.conf would not do in the initramfs" "$tmp/said"
	configure server=10.0.2.2
	make_initramfs 6.12
	grep "^W: rtrs-attach: the initramfs has a copy of $etc/rtrs/root.psk: set UMASK=0077" \
		"$tmp/said"
	echo UMASK=0077 >>"$root/etc/initramfs-tools/initramfs.conf"
}

# has PATTERN...: the initramfs, each of these files.
has() {
	local pattern

	inside "$root" lsinitramfs /tmp/initrd >"$tmp/files"
	for pattern; do
		grep -E "^(\./)?$pattern\$" "$tmp/files" || fail "no $pattern in the initramfs"
	done
}

# As local-top does: the program runs from the files of its list alone.
run_from_list() {
	local file from=$root/tmp/unpacked/main to=$tmp/alone

	inside "$root" unmkinitramfs /tmp/initrd /tmp/unpacked
	[ -d "$from" ] || from=${from%/main}
	rm -rf "$to"
	while read -r file; do
		mkdir -p "$to${file%/*}"
		inside "$root" cp -L -p "${from#"$root"}$file" /tmp/file
		cp -p "$root/tmp/file" "$to$file"
	done <"$from/conf/rtrs-attach.files"
	chroot "$to" "$sbin/rtrs-attach" --check "config=$etc/rtrs/root.conf" root
	rm -r "$root/tmp/unpacked"
}

# ---- the machine ----

# start_machine CABLES IP
start_machine() {
	local n options=() line='console=ttyS0 panic=-1 no_timer_check net.ifnames=0'

	line+=' root=/dev/rtrs/root systemd.unit=proof.target'

	rm -f "$tmp"/{tell,monitor}.{in,out} "$tmp/console.log"
	mkfifo "$tmp"/{tell,monitor}.{in,out}
	for ((n = 2; n < $1 + 2; n++)); do
		options+=(-netdev "user,id=cable$n,net=10.0.$n.0/24,host=10.0.$n.2"
			-device "virtio-net-pci,netdev=cable$n,romfile=")
	done
	# shellcheck disable=SC2086 # words
	$NET setpriv --pdeathsig KILL \
		qemu-system-x86_64 -accel tcg -cpu qemu64,+rdrand,-cx16 -m 1G \
		-nographic -nodefaults -no-reboot \
		-kernel "$guest_kernel/vmlinuz" -initrd "$tmp/initrd" \
		-append "$line ip=$2" \
		-serial "file:$tmp/console.log" \
		-chardev "pipe,id=tell,path=$tmp/tell" -serial chardev:tell \
		-chardev "pipe,id=monitor,path=$tmp/monitor" -mon chardev=monitor,mode=control \
		"${options[@]}" </dev/null >"$tmp/qemu.log" 2>&1 &
	machine=$!
	cleanup_fn kill_process "$machine"
	monitor qmp_capabilities
}

# hears LINE: as long as it takes.
hears() {
	until grep -q "$1" "$tmp/console.log" 2>/dev/null; do
		! process_ended "$machine" || fail "the machine has ended without this: $1"
		! grep "^the machine failed" "$tmp/console.log" || fail "$1"
		sleep 0.2
	done
}

tell() {
	echo "$1" 1<>"$tmp/tell.in"
}

# monitor COMMAND [ARGUMENTS]: what is written to a pipe that nobody has open is gone.
monitor() {
	local line='' in out

	exec {in}<>"$tmp/monitor.in" {out}<>"$tmp/monitor.out"
	printf '{"execute": "%s", "arguments": %s}\n' "$1" "${2:-{\}}" >&$in
	until [[ $line = '{"return"'* ]]; do
		read -r -t "$TIMEOUT_S" line <&$out || fail "the monitor does not answer $1"
	done
	exec {in}>&- {out}>&-
}

cable() {
	monitor set_link "{\"name\": \"cable2\", \"up\": $1}"
}

serve() {
	start_server --listen "tcp://127.0.0.1:$1" --auth=require --auth-psk="$tmp/root.psk" \
		root="$tmp/disk"
}

check_disk() {
	dumpe2fs -h "$tmp/disk" >"$tmp/super" 2>/dev/null
	must_fail grep needs_recovery "$tmp/super"
	fsck.ext4 -f -n "$tmp/disk"
	rm -rf "$tmp/out"
	mkdir "$tmp/out"
	debugfs -R "rdump /data $tmp/out" "$tmp/disk"
	( cd "$tmp/out/data" && sha256sum --quiet -c sums )
	[ "$(wc -l <"$tmp/out/data/sums")" -eq "$1" ]
}

# boot SERIES VIA PATHS IP: with the root file system of $root.
boot() {
	local via=$2 paths=$3 files=2 driver=nbd where

	echo "$root: Linux $1, $via, paths: $paths, ip=$4"
	[ "$via" = nbd ] || driver=ublkb
	printf '%s\n' "driver=$driver" "paths=$paths" >"$root/proof.conf"
	new_keys "$tmp/root.psk" root
	cp "$tmp/root.psk" "$root/$etc/rtrs/root.psk"
	rm -f "$tmp/disk"
	truncate -s 2G "$tmp/disk"
	serve 0
	where=("server=10.0.2.2:$server_port")
	[ "$paths" -eq 1 ] || where+=("path=10.0.3.2:$server_port")
	configure "via=$via" "${where[@]}"
	make_initramfs "$1"
	must_fail grep "^[WE]: rtrs-attach" "$tmp/said"
	stop_server "$server_pid"
	mkfs.ext4 -q -F -d "$root" "$tmp/disk"
	# It waits for its server.
	start_machine "$paths" "$4"
	hears "Waiting for the server of RTRS/RNBD disk root"
	serve "$server_port"
	hears "^the machine has written booted"
	kill_process "$server_pid"
	serve "$server_port"
	tell killed
	hears "^the machine has written server"
	if [ "$paths" -eq 2 ]; then
		files=4
		hears "^the machine has two paths"
		cable false
		tell pulled
		hears "^the machine has written one-path"
		cable true
		tell plugged
	fi
	hears "^the machine is done"
	expect_exit "$machine" 0
	stop_server "$server_pid"
	check_disk $files
}

# QEMU's network for users reaches this machine's loopback interface: one of the test.
holder unshare --net
NET="nsenter --net=/proc/$holder_pid/ns/net"
$NET ip link set lo up
SERVER_PREFIX=$NET
missing=''
for suite; do
	new_root "$suite" || { missing+=" $suite"; continue; }
	new_keys "$tmp/root.psk" root
	cp "$tmp/root.psk" "$root/$etc/rtrs/root.psk"
	refuse_mistakes
	for series in 6.1 6.12; do
		make_initramfs $series
		must_fail grep "^[WE]: rtrs-attach" "$tmp/said"
		mv "$tmp/initrd" "$root/tmp/initrd"
		has "${sbin#/}/rtrs-attach" "${etc#/}/rtrs/root.conf" \
			"${etc#/}/rtrs/root.conf.d/key.conf" "${etc#/}/rtrs/root.psk" \
			"${rules#/}" scripts/local-top/rtrs-attach conf/rtrs-attach.files \
			'.*/nbd\.ko.*' '.*/virtio_net\.ko.*'
		# Debian has it since 6.12.
		[ $series = 6.1 ] || has '.*/ublk_drv\.ko.*'
		run_from_list
	done
	[ "$suite" != bookworm ] || boot 6.12 ublk 1 dhcp
	rm -rf --one-file-system "$root"
done
[ -z "$missing" ] || skip "no chroot of:$missing"
