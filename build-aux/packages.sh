#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's packages of a tarball, in fresh chroots of Debian 12, 13 and sid: build, check by lintian,
# install into a chroot that has never built anything, try by debian/tests, remove and purge.
# ./check.sh --full=packages runs this.  sid moves: what fails with sid alone is reported, and is no failure.
#
#	packages.sh TARBALL DIR [SUITE...]
#
# DIR is made, gets the chroots (1 GB each), the packages in DIR/SUITE and all output, and loses the
# chroots at the end.  Status 77: this machine has no means for it, which the last line says.
set -eu -o pipefail

# What a suite is to have at the end.
packages=(nbdkit-plugin-rtrs nbdkit-rtrs-doc rtrs-attach rtrs-nbd rtrs-server rtrs-tools)

# shellcheck source=build-aux/chroots.sh
. "$(dirname "${BASH_SOURCE[0]}")/chroots.sh"

usage() {
	say "usage: ${0##*/} TARBALL DIR [SUITE...]"
	exit 2
}

# try_out ROOT: install, and run the tests of the packages with no more than the packages need.
try_out() {
	local name files=()

	mkdir -p "$1/debs" "$1/tests"
	for name in "${packages[@]}"; do
		cp "$debs/${name}"_*.deb "$1/debs" || return 1
		files+=("/debs/$(cd "$1/debs" && echo "${name}"_*.deb)")
	done
	apt "$1" install "${files[@]}" libnbd-bin man-db qemu-utils systemd &&
		tar -C "$1/tests" --strip-components=1 --wildcards -xf "$tarball" '*/debian' &&
		inside "$1" /tests/debian/tests/io &&
		inside "$1" /tests/debian/tests/units || return 1
	# autopkgtest has dependencies that hide a missing one: so the same once more, as Debian
	# runs its tests.
	apt "$1" install autopkgtest dpkg-dev &&
		inside "$1" autopkgtest --no-built-binaries "${files[@]}" /tests/ -- null
}

# purge ROOT: nothing of the packages is left, nothing enabled, but the user and the group: files
# may still be theirs.
purge() {
	local left

	inside "$1" systemctl enable rtrs-server.service rtrs-server@disk0.service \
		rtrs-attach@disk2.service rtrs-nbd@disk0.service nbdkit-rtrs@disk1.service || return 1
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

# one: in two chroots, because what builds has more libraries than what runs.
one() {
	debs=$dir/$suite
	step "a chroot" fresh "$suite" "$dir/$suite-run" &&
		step "a copy to build in" cp -a "$dir/$suite-run" "$dir/$suite-build" &&
		step "build" build "$dir/$suite-build" "$debs" &&
		rm -rf --one-file-system "$dir/$suite-build" &&
		step "install and try" try_out "$dir/$suite-run" &&
		step "purge" purge "$dir/$suite-run" &&
		say "$suite: $(cd "$debs" && echo *.deb)"
}

[ $# -ge 2 ] || usage
tarball=$1 dir=$2
shift 2
[ -f "$tarball" ] || { say "${0##*/}: $tarball: no such tarball; make dist makes one"; exit 2; }
[ $# -gt 0 ] || set -- bookworm trixie sid
for_suites "$@"
case $failed in
'' | ' sid') ;;
*) exit 1 ;;
esac
