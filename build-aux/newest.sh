#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NBD clients of three releases of Debian write to both gateways of a build, read back and compare: the
# tests of make check that drive these clients, and libnbd's own tests of its Python module, from its source
# package.  Server and gateways run on this machine, the clients in a chroot.
# ./check.sh --full=newest runs this.
#
#	newest.sh BUILD DIR [SUITE...]
#
# BUILD is a build directory whose tests are built.  DIR is made, gets the chroots (0.7 GB each) and all
# output, and loses the chroots at the end.  The versions of the clients are printed.  sid moves: what fails
# with sid alone is reported, and is no failure.  Status 77: this machine has no means for it, which the last
# line says.
set -eu -o pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=build-aux/chroots.sh
. "$top/build-aux/chroots.sh"

# The releases, the oldest first.
suites=(bookworm trixie sid)
# What the chroot has (nbdinfo asks file), and which of its programs take the place of this machine's.
packages=(file fio libnbd-bin nbdkit python3-libnbd qemu-system-common qemu-utils)
programs=(fio nbdcopy nbdinfo nbdsh python3 qemu-img qemu-io qemu-storage-daemon)

# Those that write through nbdkit and the plugin, and, with NBD_FRONT, through rtrs-nbd.
tests_both=(nbdcopy fio-verify qemu-io qemu-img qemu-storage-daemon nbdinfo)
# And those that nbdsh drives.
tests_both+=(durability extents flags large multi-conn past-end readonly two-exports zero-length)
# Those of rtrs-nbd alone.
tests_nbd=(nbd-gateway nbd-tls nbd-tls-write nbd-upgrade)

usage() {
	say "usage: ${0##*/} BUILD DIR [SUITE...]"
	exit 2
}

# clients SUITE ROOT: a chroot with the clients.
clients() {
	local options=()

	# The mirror's sid may be older than its Release file allows.
	[ "$1" != sid ] || options=(--aptopt='Acquire::Check-Valid-Until "false"')
	fresh "$1" "$2" "${options[@]}" --include="$(IFS=,; echo "${packages[*]}")"
}

# source_of ROOT: the source of its libnbd comes to $dir/libnbd, without a patch and without the tools for one.
# A mirror may have a package of sid without its source: then that of the release before stays there.
source_of() {
	sed 's/^deb /deb-src /' "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/source.list" &&
		apt "$1" update &&
		mkdir -p "$1/source" &&
		inside "$1" sh -c 'cd /source && apt-get -q source --download-only libnbd' &&
		rm -rf "${dir:?}/libnbd" &&
		mkdir "$dir/libnbd" &&
		tar -C "$dir/libnbd" --strip-components=1 -xf "$1"/source/libnbd_*.orig.tar.*z
}

# wrap ROOT BIN: BIN has the programs by their names, each of which runs in the chroot.
wrap() {
	local name

	mkdir -p "$2"
	for name in "${programs[@]}"; do
		inside "$1" sh -c "command -v $name" || return 1
		printf '#!/bin/bash\n. %q\nbeside %q %s "$@"\n' "$top/build-aux/chroots.sh" "$1" "$name" \
			>"$2/$name"
		chmod +x "$2/$name"
	done
}

# versions ROOT: on one line.
versions() {
	# shellcheck disable=SC2016 # the program's
	inside "$1" dpkg-query -W -f '${Package} ${Version}, ' "${packages[@]}" | sed 's/, $//'
}

# check FRONT NAME...: these tests of make check, with the clients of $dir/bin.
check() {
	local front=$1
	shift
	NBD_CLIENTS=$dir/bin LIBNBD_SOURCE=$dir/libnbd NBD_FRONT=$front VERBOSE=1 \
		make -C "$build" -k -j2 check-TESTS TESTS="$*"
}

# tests NAME...: the files of these.
tests() {
	printf 'tests/test-%s.sh ' "$@"
}

# one SUITE
one() {
	local failed='' front

	suite=$1 root=$dir/$1
	: >"$dir/$suite.log"
	step "a chroot" clients "$suite" "$root" && step "programs" wrap "$root" "$dir/bin" || return 1
	say "$suite: $(versions "$root")"
	step "the source of libnbd" source_of "$root" || failed=source
	step "through nbdkit" check nbdkit "$(tests "${tests_both[@]}")" || failed="$failed nbdkit"
	step "through rtrs-nbd" check rtrs-nbd "$(tests "${tests_both[@]}" "${tests_nbd[@]}")" ||
		failed="$failed rtrs-nbd"
	[ ! -d "$dir/libnbd" ] || for front in nbdkit rtrs-nbd; do
		step "libnbd's tests through $front" check $front tests/libnbd-suite.sh ||
			failed="$failed libnbd/$front"
	done
	[ -z "$failed" ] || { say "$suite: failed: $failed"; return 1; }
}

[ $# -ge 2 ] || usage
build=$1 dir=$2
shift 2
[ -x "$build/rtrs-server" ] || { say "${0##*/}: $build: no build directory with rtrs-server"; exit 2; }
[ $# -gt 0 ] || set -- "${suites[@]}"
needs_chroots
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
failed=''
for suite; do
	one "$suite" || failed="$failed $suite"
	rm -rf --one-file-system "${dir:?}"/{"$suite",bin}
done
[ -z "$failed" ] || say "failed:$failed"
case $failed in
'' | ' sid') ;;
*) exit 1 ;;
esac
