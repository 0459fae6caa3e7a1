# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Shared by quickstart.sh and check.sh, which source it with $top set to the top of the source tree:
# the Debian packages they need, each named once, and how to build.

# PATH of a user has no /sbin, where mke2fs and losetup are.
PATH=$PATH:/usr/sbin:/sbin

# shellcheck disable=SC2034 # used by those who source this
packages_build="autoconf automake gcc libc6-dev libibverbs-dev libjansson-dev libmicrohttpd-dev
	libgnutls28-dev libncurses-dev libnl-genl-3-dev librbd-dev librdmacm-dev libseccomp-dev liburing-dev libsystemd-dev libtool
	make nettle-dev nbdkit nbdkit-plugin-dev perl pkg-config systemtap-sdt-dev zlib1g-dev"
# What the build does without: Debian 12 has it for amd64 only.
packages_wanted="libisal-dev"
packages_quickstart="e2fsprogs libnbd-bin"
packages_check="binutils bpftrace btrfs-progs ceph-common ceph-mon ceph-osd curl e2fsprogs fio fuse3 gdb iproute2 nftables
	gnutls-bin libcriterion-dev libnbd-bin mount nbdkit procps python3 python3-libnbd qemu-system-common
	qemu-utils rpm socat strace systemd tmux util-linux
	xfsprogs xz-utils"
# What guests need; Debian's kernels for them are fetched by tests/guest/prepare.sh.
packages_guest="busybox-static cpio cryptsetup-bin dmsetup fdisk ibverbs-providers kmod lvm2 nbd-client
	qemu-system-x86 rdmacm-utils xfsprogs"
packages_full="ansible-core apparmor chromium clang clang-tidy cppcheck libclang-rt-14-dev libvirt-clients libvirt-daemon-system
	mmdebstrap prometheus python3-yaml shellcheck systemd-container valgrind"

say() {
	printf '%s\n' "$*" >&2
}

die() {
	say "${0##*/}: $*"
	exit 1
}

package_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Another program may hold the lock of dpkg: unattended-upgrades does, behind the first start of a machine.
apt_waits=(-o DPkg::Lock::Timeout=600)

# install_packages NAME...: install those that are missing, and say which.
install_packages() {
	local name missing=() as_root=()

	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		say "This is no Debian: packages are not installed here.  By Debian's names it needs: $*"
		return
	fi
	for name in "$@"; do
		package_installed "$name" || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0

	say "Installing what is missing: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null ||
			die "not root and no sudo: as root, run: apt-get install ${missing[*]}"
		as_root=(sudo)
	fi
	# A fresh machine may have no package lists, an old one stale lists: ask for new ones once.
	apt_install "${missing[@]}" && return
	say "Fetching package lists and trying once more"
	"${as_root[@]}" apt-get -q "${apt_waits[@]}" update </dev/null >&2 || die "apt-get update failed"
	apt_install "${missing[@]}" || die "cannot install: ${missing[*]}"
}

# $as_root is the caller's.
apt_install() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "${apt_waits[@]}" \
		install --no-install-recommends "$@" </dev/null >&2
}

# quietly LOGFILE COMMAND...: show the output only when the command fails.
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 && return
	tail -n 60 "$log" >&2
	say "failed: $*   (all of its output: $log)"
	return 1
}

# build_tree [CONFIGURE-OPTION...]: build and set $build to the directory.  It is build/, or the
# source tree itself where somebody ran ./configure: autoconf cannot use both, and the options stay
# those of that somebody.
build_tree() {
	local option stale=no
	build=$top/build
	[ ! -f "$top/config.status" ] || build=$top
	mkdir -p "$build" || die "cannot create $build"
	if [ ! -x "$top/configure" ]; then
		( cd "$top" && quietly "$build/autoreconf.log" autoreconf -fi ) ||
			die "autoreconf failed"
	fi
	if [ ! -f "$build/config.status" ]; then
		stale=yes
	elif [ "$build" != "$top" ]; then
		for option in "$@"; do
			"$build/config.status" --config | grep -q -F -e "$option" || stale=yes
		done
	fi
	# A relative path: configure refuses an absolute source directory that contains a space.
	if [ $stale = yes ]; then
		( cd "$build" && quietly "$build/configure.log" ../configure "$@" ) ||
			die "configure failed"
	fi
	( cd "$build" && quietly "$build/make.log" make -j"$(nproc)" ) || die "make failed"
	[ -x "$build/rtrs-server" ] ||
		die "$build is configured without rtrs-server: remove it or run make distclean there"
	[ -f "$build/.libs/nbdkit-rtrs-plugin.so" ] ||
		die "$build is configured without the plugin: remove it or run make distclean there"
}

# What make knows: make_variable NAME.
make_variable() {
	sed -n "s/^$1 = //p" "$build/Makefile"
}
