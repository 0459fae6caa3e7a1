#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Make a guest's kernel: prepare.sh SERIES DIR, with SERIES 6.12 or 6.1 of Debian 12, or 7.3 of
# the backports of Debian 13.
#
# Fetches Debian's packages of that kernel, unpacks them without installing anything, builds RTRS,
# RNBD and software iWARP (siw), which Debian does not build, out of Debian's source package, and
# leaves in DIR
#
#	vmlinuz initramfs.gz	what QEMU boots
#	lib/modules/KV		the modules that guests load, as modprobe wants them
#	kv			the version
#	made-by			the sum of what this script does, written last: with it DIR is complete
#
# Does nothing when DIR is complete and was made as it would be made now.  Needs the network only
# when it is not: Debian's archive, some 280 MB, 400 MB for 7.3, which is built in a chroot of
# Debian 13 by its compiler.  Exits with 77 where the kernel cannot be had.
set -eu -o pipefail
export LC_ALL=C

# depmod, which a user's PATH has not.
PATH=$PATH:/usr/sbin:/sbin
# shellcheck source=build-aux/chroots.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../build-aux/chroots.sh"
usage='usage: prepare.sh 7.3|6.12|6.1 DIR'
series=${1:?$usage} dir=${2:?$usage}

# What the initramfs loads to reach the host's files ...
boot_modules='virtio_pci virtio_net 9pnet_virtio 9p overlay'
# ... and what tests load.
# (the last line is kTLS)
test_modules='rdma_rxe ib_uverbs rdma_ucm rdma_cm ib_core null_blk nbd loop brd virtio_blk ext4 xfs
	dm_mod dm_multipath dm_service_time sd_mod ib_srp ib_srpt target_core_file sch_tbf
	btrfs fuse nfsd nfsv4 dm_thin_pool dm_snapshot dm_crypt xts raid1 zram
	tls gcm ctr chacha20poly1305'
# What a kernel before 6.12 lacks: Debian does not build it there.
newer_modules='ublk_drv'
# What these ask a kernel before 7 for by themselves.
named_modules='crc32_generic crc32c_generic crct10dif_generic ghash_generic chacha_generic poly1305_generic
	lzo_rle libcrc32c xxhash_generic blake2b_generic
	aes_generic algif_skcipher'
# And what is built here.
built_modules='rtrs_client rtrs_server rnbd_client rnbd_server siw'

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
# The packages that stand for the newest of the series; backports_of: the release whose backports
# have them, and whose compiler builds.
backports_of='' archive="Debian 12's security archive" tools='gcc make'
case $series in
7.3)
	image=linux-image-amd64 headers=linux-headers-amd64
	backports_of=trixie archive="the backports of Debian 13" tools=mmdebstrap
	;;
6.12) image=linux-image-6.12-amd64 headers=linux-headers-6.12-amd64 ;;
6.1) image=linux-image-amd64 headers=linux-headers-amd64 ;;
*) die "$usage" ;;
esac
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || cannot "only amd64 guests are known here"
for tool in apt-get busybox cpio depmod xz $tools; do
	command -v "$tool" >/dev/null || cannot "$tool is not installed"
done
[ -z "$backports_of" ] || [ "$(id -u)" -eq 0 ] || cannot "the chroot for Linux $series needs root"

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# Whoever comes while it is made waits, and finds it done.
exec 9>"$dir/lock"
flock 9
! complete || exit 0
# Not below $dir: the kernel's build cannot stand a path with a space.
work=$(mktemp -d /var/tmp/rtrs-guest.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root deb_dir=$work/root.deb
[ -z "$backports_of" ] || deb_dir=$root/deb

# ask COMMAND...: where the packages come from and are built.
ask() {
	if [ -n "$backports_of" ]; then
		inside "$root" "$@"
	else
		"$@"
	fi
}

# depends PACKAGE REGEX: what it needs by that name; a meta package stands for it today.
depends() {
	ask apt-cache show --no-all-versions "$1" 2>/dev/null |
		sed -n 's/^Depends: //p' | sed 's/[,|]/\n/g' | sed 's/^ *//; s/ .*//' |
		grep -E -- "$2"
}

# begin_chroot: $root becomes the release, with the lists of its backports, and what a kernel's
# build takes.
begin_chroot() {
	say "making a chroot of $backports_of, whose compiler builds Linux $series"
	{
		fresh "$backports_of" "$root" --include=binutils,make &&
		sed -n "s/ $backports_of / $backports_of-backports /p" "$root/etc/apt/sources.list" \
			>"$root/etc/apt/sources.list.d/backports.list" &&
		apt "$root" update
	} >"$work/chroot.log" 2>&1 ||
		{ cat "$work/chroot.log" >&2; cannot "a chroot of $backports_of cannot be made"; }
	image+=/$backports_of-backports headers+=/$backports_of-backports
}

# download NAME...: into $deb_dir.
download() {
	# As root apt drops to a user of its own, who must be able to write here.
	chmod 755 "$work"
	mkdir "$deb_dir"
	chmod 777 "$deb_dir"
	# shellcheck disable=SC2016 # the other shell's
	ask sh -c 'cd "$0" && exec apt-get -q -q download "$@"' \
		"${deb_dir#"${backports_of:+$root}"}" "$@"
}

fetch() {
	local real_image real_headers names

	[ -z "$backports_of" ] || begin_chroot
	real_image=$(depends "$image" '^linux-image-[0-9]') &&
		real_headers=$(depends "$headers" '^linux-headers-[0-9]') ||
		cannot "apt knows no $image and $headers: run apt-get update, with $archive"
	case $real_image in
	linux-image-"$series".*) ;;
	*) cannot "$image of $archive is ${real_image#linux-image-} today, which is no $series" ;;
	esac
	kv=${real_image#linux-image-}
	# A kernel since 7 has its files in packages of their own.
	names=$(depends "$real_image" '^linux-(base|binary|modules)-[0-9]' || true)
	if [ -n "$backports_of" ]; then
		apt "$root" install "$real_headers" >"$work/fetch.log" 2>&1 ||
			{ cat "$work/fetch.log" >&2; cannot "$real_headers cannot be installed"; }
	else
		names+=" $real_headers $(depends "$real_headers" '^linux-headers-.*-common')"
		names+=" $(depends "$real_headers" '^linux-kbuild')"
	fi
	say "fetching $real_image, its headers and linux-source-$series"
	# shellcheck disable=SC2086 # words
	download "$real_image" $names "linux-source-$series" >"$work/fetch.log" 2>&1 ||
		{ cat "$work/fetch.log" >&2; cannot "its packages cannot be fetched"; }
	for deb in "$deb_dir"/*.deb; do
		case $deb in
		*linux-source*) dpkg-deb --fsys-tarfile "$deb" >"$work/source.tar" ;;
		*) dpkg -x "$deb" "$root" ;;
		esac
		rm "$deb"
	done
}

# Headers are made to be installed, as those of a chroot are: teach others where they are.
relocate() {
	local h=usr/src/linux-headers-$kv

	build=/$h
	[ -z "$backports_of" ] || return 0
	sed -i "s,/usr/src/,$root/usr/src/,g" "$root/$h/Makefile"
	build=$root/$h
}

# build_module DIR WORD...: what make is told beside the place.
build_module() {
	ask make -C "$build" M="$src/$1" CONFIG_DEBUG_INFO_BTF_MODULES= "${@:2}" modules
}

# No BTF: it takes pahole, and nobody here reads it.
build_modules() {
	local rtrs=drivers/infiniband/ulp/rtrs rnbd=drivers/block/rnbd siw=drivers/infiniband/sw/siw
	local place=$work extra=$root/lib/modules/$kv/extra

	say "building RTRS, RNBD and siw of $kv"
	[ -z "$backports_of" ] || place=$root
	src=${place#"$root"}/linux-source-$series
	tar -C "$work" -xOf "$work/source.tar" "./usr/src/linux-source-$series.tar.xz" |
		tar -C "$place" -xJf - "linux-source-$series/$rtrs" "linux-source-$series/$rnbd" \
			"linux-source-$series/$siw"
	rm "$work/source.tar"
	{
		build_module $rtrs CONFIG_INFINIBAND_RTRS=m CONFIG_INFINIBAND_RTRS_CLIENT=m \
			CONFIG_INFINIBAND_RTRS_SERVER=m &&
		build_module $rnbd CONFIG_BLK_DEV_RNBD=y CONFIG_BLK_DEV_RNBD_CLIENT=m \
			CONFIG_BLK_DEV_RNBD_SERVER=m KBUILD_EXTRA_SYMBOLS="$src/$rtrs/Module.symvers" \
			ccflags-y="-I$src/$rtrs" &&
		build_module $siw CONFIG_RDMA_SIW=m
	} >"$work/make.log" 2>&1 ||
		{ tail -n 40 "$work/make.log" >&2; die "cannot build modules of $kv"; }
	mkdir -p "$extra"
	cp "$place/linux-source-$series"/{$rtrs,$rnbd,$siw}/*.ko "$extra"
	strip --strip-debug "$extra"/*.ko
}

# In the order of loading; modules that are built in are left out.
show_depends() {
	modprobe -d "$root" -S "$kv" --show-depends "$1" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
}

install_modules() {
	local m ko

	[ -d "$root/lib/modules/$kv/kernel" ] || die "$kv has no modules"
	depmod -b "$root" "$kv"
	for m in $named_modules $newer_modules; do
		show_depends "$m" 2>/dev/null || true
	done >"$work/named"
	for m in $boot_modules $test_modules $built_modules; do
		show_depends "$m"
	done | cat - "$work/named" | awk '!seen[$0]++' >"$work/list"
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
build_modules
install_modules
make_initramfs
vmlinuz=$root/boot/vmlinuz-$kv
[ -e "$vmlinuz" ] || vmlinuz=$root/lib/modules/$kv/vmlinuz
cp "$vmlinuz" "$out/vmlinuz"
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
