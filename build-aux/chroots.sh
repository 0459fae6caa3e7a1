# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Chroots of Debian, and Debian's packages built in one: sourced by packages.sh, fleet.sh and newest.sh,
# which set $dir, where chroots, packages and logs are; step() also wants $suite, build() $tarball.
# for_suites() makes and sets $dir and $suite by itself.

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

# for_suites SUITE...: the caller's function one() for each, with $suite; it makes its chroots as
# $dir/$suite-*, which go with it.  $failed has the suites for which one() failed.
for_suites() {
	needs_chroots
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	failed=''
	for suite; do
		: >"$dir/$suite.log"
		one || failed="$failed $suite"
		rm -rf --one-file-system "${dir:?}/${suite:?}"-*
	done
	[ -z "$failed" ] || say "failed:$failed"
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

# fresh SUITE ROOT [MMDEBSTRAP-OPTION...]: a chroot of Debian's smallest kind.  mmdebstrap has a mount namespace of its
# own: a run that is killed leaves no mount.
fresh() {
	local options=()

	# The mirror's sid may be older than its Release file allows.
	[ "$1" != sid ] || options=(--aptopt='Acquire::Check-Valid-Until "false"')
	unshare --mount mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --skip=cleanup/apt/lists \
		"${options[@]}" "${@:3}" "$1" "$2"
}

# inside ROOT COMMAND...: as root of the chroot, with a /proc of its own; what is left ends with the
# command.  What this machine unmounts goes from the chroot's mounts, too: a copy would keep the device busy.
inside() {
	local root=$1
	shift
	unshare --mount --propagation slave --pid --fork --kill-child --mount-proc="$root/proc" \
		chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "$@"
}

# beside ROOT COMMAND...: becomes the command, as root of the chroot, which meets the processes of this
# machine: it has this machine's /tmp, the caller's environment, and the working directory if that is there.
# The mounts are in a namespace of the command, and end with it.
beside() {
	# shellcheck disable=SC2016 # the other shell's
	exec unshare --mount --propagation slave sh -e -c \
		'root=$0; mount --bind /tmp "$root/tmp"; mount -t proc proc "$root/proc"; exec chroot "$root" "$@"' \
		"$1" env PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "${@:2}"
}

# machine ROOT COMMAND...: as inside(), with what builds and tests want: the devices and the /sys of this machine,
# and its $CCACHE_DIR.
machine() {
	mkdir -p "$1/ccache"
	# shellcheck disable=SC2016 # the other shell's
	unshare --mount --propagation slave --pid --fork --kill-child sh -e -c \
		'root=$0; mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
		mount --rbind /sys "$root/sys"; mount -t tmpfs tmpfs "$root/run"
		[ -z "${CCACHE_DIR-}" ] || mount --bind "$CCACHE_DIR" "$root/ccache"; exec chroot "$root" "$@"' \
		"$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		${CCACHE_DIR:+CCACHE_DIR=/ccache} "${@:2}"
}

# apt ROOT WORD...
apt() {
	inside "$1" apt-get -q -y --no-install-recommends "${@:2}"
}

# build ROOT DEBS: the packages come to the directory DEBS when all of them are there.  With $CCACHE_DIR ccache compiles.
# shellcheck disable=SC2016 # the other shell's
build() {
	local by=inside

	[ -z "${CCACHE_DIR-}" ] || by=machine
	mkdir -p "$1/build/source" "$2" &&
		tar -C "$1/build/source" --strip-components=1 -xf "$tarball" &&
		apt "$1" install build-essential lintian ${CCACHE_DIR:+ccache} &&
		apt "$1" build-dep /build/source &&
		$by "$1" sh -c 'PATH=/usr/lib/ccache:$PATH; cd /build/source && nice dpkg-buildpackage -us -uc -b' &&
		inside "$1" sh -c 'lintian --fail-on error --allow-root /build/*.changes' &&
		cp "$1"/build/*.deb "$2" &&
		: >"$2/built"
}
