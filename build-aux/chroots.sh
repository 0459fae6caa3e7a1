# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Chroots of Debian, and Debian's packages built in one: sourced by packages.sh and fleet.sh, which
# set $tarball, and $dir, where chroots, packages and logs are; step() also wants $suite.

say() {
	printf '%s\n' "$*" >&2
}

skip() {
	say "skipped: $*"
	exit 77
}

# needs_chroots: or says why there are none, and skips.
needs_chroots() {
	command -v mmdebstrap >/dev/null || skip "${0##*/}: mmdebstrap is not installed"
	[ "$(id -u)" -eq 0 ] || skip "${0##*/}: chroots need root"
	unshare --mount --pid --fork true 2>/dev/null ||
		skip "${0##*/}: no namespaces for the chroots"
}

# step NAME COMMAND...: its output goes to $dir/$suite.log, and is shown where the command fails.
step() {
	local name=$1 log=$dir/$suite.log
	shift
	say "$suite: $name"
	if ! "$@" >"$log.step" 2>&1 </dev/null; then
		tail -n 60 "$log.step" >&2
		say "$suite: $name failed   (all of its output: $log)"
		cat "$log.step" >>"$log"
		return 1
	fi
	cat "$log.step" >>"$log"
}

# fresh SUITE ROOT [MMDEBSTRAP-OPTION...]: a chroot of Debian's smallest kind.
fresh() {
	mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --skip=cleanup/apt/lists \
		"${@:3}" "$1" "$2"
}

# inside ROOT COMMAND...: as root of the chroot, with a /proc of its own; what is left ends with the
# command.
inside() {
	local root=$1
	shift
	unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" \
		chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "$@"
}

# apt ROOT WORD...
apt() {
	inside "$1" apt-get -q -y --no-install-recommends "${@:2}"
}

# build ROOT DEBS: the packages come to the directory DEBS when all of them are there.
build() {
	mkdir -p "$1/build/source" "$2" &&
		tar -C "$1/build/source" --strip-components=1 -xf "$tarball" &&
		apt "$1" install build-essential lintian &&
		apt "$1" build-dep /build/source &&
		inside "$1" sh -c 'cd /build/source && nice dpkg-buildpackage -us -uc -b' &&
		inside "$1" sh -c 'lintian --fail-on error --allow-root /build/*.changes' &&
		cp "$1"/build/*.deb "$2" &&
		: >"$2/built"
}
