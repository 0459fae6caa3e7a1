# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by findings about a kernel that is not this machine's: a guest boots it, in QEMU without KVM, on the files of
# packages().
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
# No initramfs by the package of the kernel: in_guest() makes its own.
export INITRD=No

# guest_packages KERNEL=VERSION [NAME=VERSION...]: packages() of trixie, with that kernel
guest_packages() {
	command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86 is not installed"
	command -v cpio >/dev/null || skip "cpio is not installed"
	packages trixie "$@" busybox-static=1:1.37.0-6+b9 kmod=34.2-2 iproute2=6.15.0-1
	kernel=${1%%=*}
	kernel=${kernel#linux-image-}
}

# in_guest FILE [MODULE...]: load the modules, run the script FILE with bash there, and print what it prints
in_guest() {
	local root=$tmp/trixie boot=$tmp/boot module n=10

	rm -rf "$boot"
	mkdir -p "$boot"/{bin,dev,modules,new,proc,sys}
	cp "$root/bin/busybox" "$boot/bin"
	cp "$1" "$root/job"
	printf '%s\n' "modprobe -a ${*:2}" >"$root/modules"
	chroot "$root" modprobe -S "$kernel" --show-depends -a virtio_pci virtio_net 9pnet_virtio 9p |
		sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' |
		while read -r module; do
			n=$((n + 1))
			case $module in
			*.xz) xz -dc "$root$module" >"$boot/modules/$n.ko" ;;
			*) cp "$root$module" "$boot/modules/$n.ko" ;;
			esac
		done
	cat >"$boot/init" <<-'END'
		#!/bin/busybox sh
		/bin/busybox --install -s /bin
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mount -t devtmpfs dev /dev
		for module in /modules/*; do insmod $module; done
		mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,cache=loose root /new || poweroff -f
		for dir in proc sys dev; do mount --move /$dir /new/$dir; done
		exec switch_root /new /bin/bash -c '
			mount -t tmpfs tmpfs /tmp
			mount -t tmpfs tmpfs /run
			ln -s /proc/self/fd /dev/fd
			. /modules
			ulimit -l unlimited
			ip link set lo up
			bash /job </dev/null >/output 2>&1
			echo $? >/status
			sync
			busybox poweroff -f'
	END
	chmod 755 "$boot/init"
	(cd "$boot" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$tmp/initrd"
	rm -f "$root/output" "$root/status"
	# The options of tests/guest/qemu.sh, with its reasons.
	setpriv --pdeathsig TERM timeout 600 setpriv --pdeathsig KILL nice -n 2 qemu-system-x86_64 \
		-accel tcg,thread=multi -cpu qemu64,+rdrand,-cx16 -smp 2 -m 1G -nodefaults -nographic -no-reboot \
		-serial "file:$tmp/console" -kernel "$root/boot/vmlinuz-$kernel" -initrd "$tmp/initrd" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check" \
		-virtfs "local,path=$root,mount_tag=root,security_model=none,multidevs=remap" \
		-nic user,model=virtio-net-pci </dev/null >"$tmp/qemu" 2>&1 || true
	[ -e "$root/status" ] || {
		tail -n 20 "$tmp/qemu" "$tmp/console" "$root/output"
		skip "the guest did not come to its end"
	} >&2
	cat "$root/output"
	return "$(cat "$root/status")"
}
