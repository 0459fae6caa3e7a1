#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=1800 full
# The hook of contrib/initramfs with initramfs-tools of Debian 12 and 13, in chroots: what it says
# of mistakes and of keys, and that the initramfs has the program, the modules of both drivers, the
# files of the disk, and all that the process needs when the initramfs has gone.
#
# For one release:	tests/guest/test-attach-initramfs.sh trixie
. "$(dirname "$0")/../../build-aux/chroots.sh"
. ./tests/functions.sh
. "$top_srcdir/tests/guest/qemu.sh"
requires_attach
requires_root
needs_chroots
[ $# -gt 0 ] || set -- bookworm trixie

# What rtrs-attach is linked with, too.  Names of libraries are those of Debian 12; Debian 13's
# packages provide them.
packages=(busybox initramfs-tools kmod udev zstd libgnutls30 libhogweed6 libibverbs1 libisal2
	libjansson4 libmicrohttpd12 libnl-genl-3-200 librdmacm1 libsystemd0 liburing2)
hook=$top_builddir/contrib/initramfs/hooks/rtrs-attach
sbin=$(sed -n 's,^program=\(.*\)/rtrs-attach$,\1,p' "$hook")
etc=$(sed -n 's,^[[:space:]]*conf=\(.*\)/rtrs/\$name.conf$,\1,p' "$hook")
rules=$(sed -n 's,^copy_file rules ,,p' "$hook")
[ -n "$sbin" ] && [ -n "$etc" ] && [ -n "$rules" ] || fail "the hook has other lines"

# ---- the root file system ----

# new_root SUITE: sets root, a system with the programs, the hook and what it needs.
new_root() {
	root=$tmp/$1
	fresh "$1" "$root" --include="$(IFS=,; echo "${packages[*]}")" >"$tmp/$1.log" 2>&1 \
		</dev/null || { tail -n 20 "$tmp/$1.log"; return 1; }
	mkdir -p "$root/$sbin" "$root/$etc/rtrs" "$root/${rules%/*}" \
		"$root/usr/share/initramfs-tools"/{hooks,scripts/local-top}
	cp "$RTRS_ATTACH" "$root/$sbin"
	cp "$top_builddir/contrib/udev/60-rtrs-attach.rules" "$root/$rules"
	cp "$hook" "$root/usr/share/initramfs-tools/hooks"
	cp "$top_builddir/contrib/initramfs/local-top/rtrs-attach" \
		"$root/usr/share/initramfs-tools/scripts/local-top"
	echo 'RTRS_ATTACH="root"' >"$root/etc/initramfs-tools/conf.d/rtrs-attach"
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
	printf '%s\n' "$@" export=root "auth-psk=$etc/rtrs/root.psk" | sed 's/=/ = /' \
		>"$root/$etc/rtrs/root.conf"
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
		has "${sbin#/}/rtrs-attach" "${etc#/}/rtrs/root.conf" "${etc#/}/rtrs/root.psk" \
			"${rules#/}" scripts/local-top/rtrs-attach conf/rtrs-attach.files \
			'.*/nbd\.ko.*' '.*/virtio_net\.ko.*'
		# Debian has it since 6.12.
		[ $series = 6.1 ] || has '.*/ublk_drv\.ko.*'
		run_from_list
	done
	rm -rf --one-file-system "$root"
done
[ -z "$missing" ] || skip "no chroot of:$missing"
