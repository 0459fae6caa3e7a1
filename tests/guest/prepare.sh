#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Make a guest's kernel: prepare.sh SERIES DIR, with SERIES 6.12 or 6.1 of Debian.
#
# Fetches Debian's packages of that kernel, unpacks them without installing anything, builds RTRS
# and RNBD, which no distribution builds, out of Debian's source package, and leaves in DIR
#
#	vmlinuz initramfs.gz	what QEMU boots
#	lib/modules/KV		the modules that guests load, as modprobe wants them
#	kv			the version
#	made-by			the sum of what this script does, written last: with it DIR is complete
#
# Does nothing when DIR is complete and was made as it would be made now.  Needs the network only
# when it is not: Debian's archive, some 280 MB.  Exits with 77 where the kernel cannot be had.
set -eu -o pipefail
export LC_ALL=C

# depmod, which a user's PATH has not.
PATH=$PATH:/usr/sbin:/sbin
usage='usage: prepare.sh 6.12|6.1 DIR'
series=${1:?$usage} dir=${2:?$usage}

# What the initramfs loads to reach the host's files ...
boot_modules='virtio_pci virtio_net 9pnet_virtio 9p overlay'
# ... and what tests load.
# (the last lines are what these ask the kernel for by themselves, and kTLS)
test_modules='rdma_rxe ib_uverbs rdma_ucm rdma_cm ib_core null_blk nbd loop brd virtio_blk ext4 xfs
	dm_mod dm_multipath dm_service_time sd_mod ib_srp ib_srpt target_core_file sch_tbf
	crc32_generic crc32c_generic crct10dif_generic
	tls gcm ctr ghash_generic chacha20poly1305 chacha_generic poly1305_generic'

say() {
	printf 'prepare.sh: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 1
}

cannot() {
	printf 'SKIP: no kernel for guests: %s\n' "$*"
	exit 77
}

# Modules to be had and options of the build stand here: what another script has made is made anew.
me=$(grep -v '^[[:space:]]*#' "${BASH_SOURCE[0]}" | sha256sum | cut -d ' ' -f 1)
complete() {
	[ -f "$dir/kv" ] && [ "$(cat "$dir/made-by" 2>/dev/null)" = "$me" ]
}

! complete || exit 0
case $series in
6.12) image=linux-image-6.12-amd64 headers=linux-headers-6.12-amd64 ;;
6.1) image=linux-image-amd64 headers=linux-headers-amd64 ;;
*) die "$usage" ;;
esac
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || cannot "only amd64 guests are known here"
for tool in apt-get busybox cpio depmod gcc make xz; do
	command -v $tool >/dev/null || cannot "$tool is not installed"
done

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# Whoever comes while it is made waits, and finds it done.
exec 9>"$dir/lock"
flock 9
! complete || exit 0
# Not below $dir: the kernel's build cannot stand a path with a space.
work=$(mktemp -d /var/tmp/rtrs-guest.XXXXXX)
trap 'rm -rf "$work"' EXIT
root=$work/root

# depends PACKAGE REGEX: what the meta package stands for today.
depends() {
	apt-cache show --no-all-versions "$1" 2>/dev/null |
		sed -n 's/^Depends: //p' | sed 's/[,|]/\n/g' | sed 's/^ *//; s/ .*//' |
		grep -E -- "$2" | head -n 1
}

fetch() {
	local real_image real_headers common kbuild

	real_image=$(depends $image '^linux-image-[0-9]') &&
		real_headers=$(depends $headers '^linux-headers-[0-9]') ||
		cannot "apt knows no $image and $headers: run apt-get update, with Debian 12's security archive"
	common=$(depends "$real_headers" '^linux-headers-.*-common')
	kbuild=$(depends "$real_headers" '^linux-kbuild')
	say "fetching $real_image, its headers and linux-source-$series"
	mkdir "$work/deb"
	# As root apt drops to a user of its own, who must be able to write here.
	chmod 755 "$work"
	chmod 777 "$work/deb"
	( cd "$work/deb" &&
		apt-get -q -q download "$real_image" "$real_headers" "$common" "$kbuild" \
		"linux-source-$series" ) >"$work/fetch.log" 2>&1 ||
		{ cat "$work/fetch.log" >&2; cannot "its packages cannot be fetched"; }
	kv=${real_image#linux-image-}
	for deb in "$work"/deb/*.deb; do
		case $deb in
		*linux-source*) dpkg-deb --fsys-tarfile "$deb" >"$work/source.tar" ;;
		*) dpkg -x "$deb" "$root" ;;
		esac
		rm "$deb"
	done
}

# Headers are made to be installed: teach them where they are.
relocate() {
	local h=$root/usr/src/linux-headers-$kv

	sed -i "s,/usr/src/,$root/usr/src/,g" "$h/Makefile"
	build=$h
}

build_rtrs() {
	local rtrs=drivers/infiniband/ulp/rtrs rnbd=drivers/block/rnbd

	say "building RTRS and RNBD of $kv"
	tar -C "$work" -xOf "$work/source.tar" "./usr/src/linux-source-$series.tar.xz" |
		tar -C "$work" -xJf - "linux-source-$series/$rtrs" "linux-source-$series/$rnbd"
	rm "$work/source.tar"
	src=$work/linux-source-$series
	# No BTF: it takes pahole, and nobody here reads it.
	make -C "$build" M="$src/$rtrs" CONFIG_DEBUG_INFO_BTF_MODULES= CONFIG_INFINIBAND_RTRS=m \
		CONFIG_INFINIBAND_RTRS_CLIENT=m CONFIG_INFINIBAND_RTRS_SERVER=m modules \
		>"$work/make.log" 2>&1 &&
	make -C "$build" M="$src/$rnbd" CONFIG_DEBUG_INFO_BTF_MODULES= \
		CONFIG_BLK_DEV_RNBD_CLIENT=m \
		CONFIG_BLK_DEV_RNBD_SERVER=m KBUILD_EXTRA_SYMBOLS="$src/$rtrs/Module.symvers" \
		ccflags-y="-I$src/$rtrs" \
		modules >>"$work/make.log" 2>&1 ||
		{ tail -n 40 "$work/make.log" >&2; die "cannot build RTRS and RNBD"; }
	mkdir -p "$modules/extra"
	cp "$src/$rtrs"/*.ko "$src/$rnbd"/*.ko "$modules/extra"
	strip --strip-debug "$modules"/extra/*.ko
}

# In the order of loading; modules that are built in are left out.
show_depends() {
	modprobe -d "$root" -S "$kv" --show-depends "$1" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
}

install_modules() {
	local m ko

	[ -d "$root/lib/modules/$kv" ] || die "$kv has no modules"
	depmod -b "$root" "$kv"
	for m in $boot_modules $test_modules; do
		show_depends "$m"
	done | awk '!seen[$0]++' >"$work/list"
	while read -r ko; do
		mkdir -p "$modules/$(dirname "${ko#"$root/lib/modules/$kv/"}")"
		cp "$ko" "$modules/$(dirname "${ko#"$root/lib/modules/$kv/"}")"
	done <"$work/list"
	cp "$root/lib/modules/$kv"/modules.{order,builtin,builtin.modinfo} "$modules"
	depmod -b "$out" "$kv"
}

make_initramfs() {
	local i=$work/initramfs m n=0 ko

	mkdir -p "$i/bin" "$i/modules" "$i"/{proc,sys,dev,mnt,new,low}
	cp "$(command -v busybox)" "$i/bin/busybox"
	file_is_static "$i/bin/busybox" || die "busybox is not static: install busybox-static"
	for m in $boot_modules; do
		show_depends "$m"
	done | awk '!seen[$0]++' | while read -r ko; do
		n=$((n + 1))
		case $ko in
		*.xz) xz -dc "$ko" >"$i/modules/$(printf %02d $n).ko" ;;
		*) cp "$ko" "$i/modules/$(printf %02d $n).ko" ;;
		esac
	done
	( cd "$i" && find . | cpio --quiet -o -H newc | gzip -1 ) >"$out/initramfs.gz"
}

file_is_static() {
	! ldd "$1" >/dev/null 2>&1
}

out=$work/out
fetch
modules=$out/lib/modules/$kv
mkdir -p "$modules"
relocate
build_rtrs
install_modules
make_initramfs
cp "$root/boot/vmlinuz-$kv" "$out/vmlinuz"
echo "$kv" >"$out/kv"
# Renamed, because guests may be running on the old ones.
rm -rf "$dir/new" "$dir/old" "$dir/made-by"
mkdir "$dir/new" "$dir/old"
cp -r "$out/." "$dir/new"
for name in kv initramfs.gz vmlinuz lib; do
	[ ! -e "$dir/$name" ] || mv "$dir/$name" "$dir/old"
	mv "$dir/new/$name" "$dir/$name"
done
rm -rf "$dir/new" "$dir/old"
echo "$me" >"$dir/made-by"
say "$dir: Linux $kv"
