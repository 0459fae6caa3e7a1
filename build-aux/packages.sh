#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's packages of a tarball, in fresh chroots of Debian 12 and 13: build, check by lintian,
# install into a chroot that has never built anything, try by debian/tests, remove and purge.
# ./check.sh --full=packages runs this.
#
#	packages.sh TARBALL DIR [SUITE...]
#
# DIR is made, gets the chroots (1 GB each), the packages and all output, and loses the chroots at
# the end.  Status 77: this machine has no means for it, which the last line says.
set -eu -o pipefail

# What a suite is to have at the end.
packages=(nbdkit-plugin-rtrs nbdkit-rtrs-doc rtrs-nbd rtrs-server rtrs-tools)

say() {
	printf '%s\n' "$*" >&2
}

usage() {
	say "usage: ${0##*/} TARBALL DIR [SUITE...]"
	exit 2
}

skip() {
	say "skipped: $*"
	exit 77
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

# build ROOT: the packages come to $debs.
build() {
	mkdir -p "$1/build/source" &&
		tar -C "$1/build/source" --strip-components=1 -xf "$tarball" &&
		apt "$1" install build-essential lintian &&
		apt "$1" build-dep /build/source &&
		inside "$1" sh -c 'cd /build/source && nice dpkg-buildpackage -us -uc -b' &&
		inside "$1" sh -c 'lintian --fail-on error --allow-root /build/*.changes' &&
		cp "$1"/build/*.deb "$debs"
}

# try_out ROOT: install, and run the tests of the packages with no more than the packages need.
try_out() {
	local name files=()

	mkdir -p "$1/debs" "$1/tests"
	for name in "${packages[@]}"; do
		cp "$debs/${name}"_*.deb "$1/debs" || return 1
		files+=("/debs/$(cd "$1/debs" && echo "${name}"_*.deb)")
	done
	apt "$1" install "${files[@]}" libnbd-bin man-db systemd &&
		tar -C "$1/tests" --strip-components=1 --wildcards -xf "$tarball" '*/debian' &&
		inside "$1" /tests/debian/tests/io &&
		inside "$1" /tests/debian/tests/units || return 1
	# autopkgtest has dependencies that hide a missing one: so the same once more, as Debian
	# runs its tests.
	apt "$1" install autopkgtest dpkg-dev &&
		inside "$1" autopkgtest --no-built-binaries "${files[@]}" /tests/ -- null
}

# purge ROOT: nothing of the packages is left, but the user and the group: files may still be
# theirs.
purge() {
	local left

	apt "$1" purge "${packages[@]}" || return 1
	rm -rf "$1/debs" "$1/tests"
	# man-db keeps pages that were shown, by itself.
	left=$(find "$1" -xdev -name '*rtrs*' ! -path "$1/var/log/*" ! -path "$1/var/cache/man/*")
	[ -z "$left" ] || { echo "left behind: $left"; return 1; }
	dpkg_knows_none "$1"
}

dpkg_knows_none() {
	local name

	for name in "${packages[@]}"; do
		if inside "$1" dpkg-query -W "$name"; then
			echo "dpkg still knows $name"
			return 1
		fi
	done
}

# one SUITE: in two chroots, because what builds has more libraries than what runs.
one() {
	suite=$1 debs=$dir/$1
	mkdir -p "$debs"
	: >"$dir/$suite.log"
	step "a chroot" mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io \
		--skip=cleanup/apt/lists "$suite" "$dir/$suite-run" &&
		step "a copy to build in" cp -a "$dir/$suite-run" "$dir/$suite-build" &&
		step "build" build "$dir/$suite-build" &&
		rm -rf --one-file-system "$dir/$suite-build" &&
		step "install and try" try_out "$dir/$suite-run" &&
		step "purge" purge "$dir/$suite-run" &&
		say "$suite: $(cd "$debs" && echo *.deb)"
}

[ $# -ge 2 ] || usage
tarball=$1 dir=$2
shift 2
[ -f "$tarball" ] || { say "${0##*/}: $tarball: no such tarball; make dist makes one"; exit 2; }
[ $# -gt 0 ] || set -- bookworm trixie
command -v mmdebstrap >/dev/null || skip "packages: mmdebstrap is not installed"
[ "$(id -u)" -eq 0 ] || skip "packages: chroots need root"
unshare --mount --pid --fork true 2>/dev/null || skip "packages: no namespaces for the chroots"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
failed=''
for suite; do
	one "$suite" || failed="$failed $suite"
	rm -rf --one-file-system "$dir/$suite-run" "$dir/$suite-build"
done
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
