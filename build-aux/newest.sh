#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What other releases of Debian bring, in two parts:
#
# - NBD clients of three releases write to both gateways of a build, read back and compare: the tests of make
#   check that drive these clients, and libnbd's own tests of its Python module, from its source package.
#   Server and gateways run on this machine, the clients in a chroot.
# - The whole tree is built from the tarball in chroots of the newest releases, with their compilers and
#   libraries, and tested there with their programs: make check-fast, and each test that drives a program of
#   others.  Such a chroot has a PID namespace of its own, as a container has.
#
# ./check.sh --full=newest runs this.
#
#	newest.sh BUILD TARBALL DIR [SUITE...]
#
# BUILD is a build directory whose tests are built.  DIR is made, gets the chroots (0.7 GB for clients, 3 GB for
# the tree) and all output, and loses the chroots at the end.  Versions are printed.  sid moves: what fails
# with sid alone is reported, and is no failure.  Status 77: this machine has no means for it, which the last
# line says.  With CCACHE_DIR the compilers in chroots use this cache of ccache.
set -eu -o pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=build-aux/chroots.sh
. "$top/build-aux/chroots.sh"
# shellcheck source=build-aux/setup.sh
. "$top/build-aux/setup.sh"

# The releases, the oldest first, and those in which the tree is built: make check has the first.
suites=(bookworm trixie sid)
suites_tree=(trixie sid)
# What the chroot has (nbdinfo asks file), and which of its programs take the place of this machine's.
packages=(file fio libnbd-bin nbdkit python3-libnbd qemu-system-common qemu-utils)
programs=(fio nbdcopy nbdinfo nbdsh python3 qemu-img qemu-io qemu-storage-daemon)

# Those that write through nbdkit and the plugin, and, with NBD_FRONT, through rtrs-nbd.
tests_both=(nbdcopy fio-verify qemu-io qemu-img qemu-storage-daemon nbdinfo)
# And those that nbdsh drives.
tests_both+=(durability extents flags large multi-conn past-end readonly two-exports zero-length)
# Those of rtrs-nbd alone.
tests_nbd=(nbd-gateway nbd-tls nbd-tls-write nbd-upgrade)

# Of the tree: what builds and tests it.
# shellcheck disable=SC2206 # lists of words
packages_tree=($packages_build $packages_wanted $packages_quickstart $packages_check ${CCACHE_DIR:+ccache} prometheus xfsprogs)
# A test that has one of these words drives a program of others.
foreign='start_nbdkit|start_gateway|nbdkit|nbdcopy|nbdinfo|nbdsh|qemu-|fio|prometheus|ceph_start|certtool|gnutls-'
foreign+='|curl|systemd|tmux|bpftrace|strace|gdb'

usage() {
	say "usage: ${0##*/} BUILD TARBALL DIR [SUITE...]"
	exit 2
}

# ---- clients ----

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

# versions ROOT PACKAGE...: on one line, of those that are there.
versions() {
	# shellcheck disable=SC2016 # the program's
	inside "$1" dpkg-query -W -f '${Package} ${Version}, ' "${@:2}" 2>/dev/null | sed 's/, $//'
}

# check FRONT NAME...: these tests of make check, with the clients of $bin.
check() {
	local front=$1
	shift
	NBD_CLIENTS=$bin LIBNBD_SOURCE=$dir/libnbd NBD_FRONT=$front VERBOSE=1 \
		make -C "$build" -k -j2 check-TESTS TESTS="$*"
}

# tests NAME...: the files of these.
tests() {
	printf 'tests/test-%s.sh ' "$@"
}

# clients: $failures gets what failed.
clients() {
	local front root=$dir/$suite-clients bin=$dir/$suite-bin

	step "a chroot" fresh "$suite" "$root" --include="$(IFS=,; echo "${packages[*]}")" &&
		step "programs" wrap "$root" "$bin" || { failures+=" clients"; return; }
	say "$suite: $(versions "$root" "${packages[@]}")"
	step "the source of libnbd" source_of "$root" || failures+=" source"
	step "through nbdkit" check nbdkit "$(tests "${tests_both[@]}")" || failures+=" nbdkit"
	step "through rtrs-nbd" check rtrs-nbd "$(tests "${tests_both[@]}" "${tests_nbd[@]}")" ||
		failures+=" rtrs-nbd"
	[ ! -d "$dir/libnbd" ] || for front in nbdkit rtrs-nbd; do
		step "libnbd's tests through $front" check $front tests/libnbd-suite.sh ||
			failures+=" libnbd/$front"
	done
	rm -rf --one-file-system "$root"
}

# ---- the tree ----

# furnish ROOT: it gets the packages, without their services; $lacking those that the mirror does not have, or
# that cannot be installed.
furnish() {
	local name

	lacking=''
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod +x "$1/usr/sbin/policy-rc.d"
	apt "$1" install "${packages_tree[@]}" && return
	for name in "${packages_tree[@]}"; do
		apt "$1" install "$name" || lacking+=" $name"
	done
}

# at ROOT COMMAND...: in the build directory of the chroot.
at() {
	# shellcheck disable=SC2016 # the other shell's
	machine "$1" sh -c 'cd /build/tree && exec "$@"' sh "${@:2}"
}

# configure_tree ROOT
configure_tree() {
	mkdir -p "$1/build/source" "$1/build/tree" &&
		tar -C "$1/build/source" --strip-components=1 -xf "$tarball" &&
		at "$1" ../source/configure --enable-gcc-warnings ${CCACHE_DIR:+"CC=ccache gcc"}
}

# test_tree ROOT TARGET [MAKE-ARGUMENT...]: says which tests fail, and which were skipped, with their reasons.
test_tree() {
	local at=$1/build/tree target=$2 kind name status=0

	say "$suite: make $target"
	rm -f "$at/test-suite.log"
	at "$1" make -k -j2 "$target" "${@:3}" >"$at/$target.log" 2>&1 </dev/null || status=$?
	cat "$at/$target.log" "$at/test-suite.log" >>"$dir/$suite.log" ||
		{ tail -n 60 "$at/$target.log" >&2; return 1; }
	while IFS=': ' read -r kind name; do
		say "$suite: $kind: $name: $(sed -n "s/^$kind: //p" "$at/${name%.*}.log" | head -n 1)"
	done < <(grep -E '^(FAIL|ERROR|SKIP): ' "$at/$target.log" | sort -u)
	say "$suite: make $target: $(grep -c '^PASS: ' "$at/$target.log") tests passed"
	return $status
}

# tests_foreign SOURCE
tests_foreign() {
	(cd "$1" && grep -l -E "$foreign" tests/test-*.sh)
}

# tree: $failures gets what failed.
tree() {
	local lacking='' root=$dir/$suite-tree

	step "a chroot for the tree" fresh "$suite" "$root" && step "its packages" furnish "$root" ||
		{ failures+=" packages"; return; }
	[ -z "$lacking" ] || say "$suite: not to be had:$lacking"
	say "$suite: $(versions "$root" "${packages_tree[@]}")"
	step "configure" configure_tree "$root" &&
		step "make" at "$root" make -k -j"$(nproc)" &&
		step "make its tests" at "$root" make -k -j"$(nproc)" check TESTS= || { failures+=" build"; return; }
	test_tree "$root" check-fast || failures+=" check-fast"
	test_tree "$root" check TESTS="$(tests_foreign "$root/build/source" | tr '\n' ' ')" || failures+=" check"
}

one() {
	local failures=''

	clients
	case " ${suites_tree[*]} " in
	*" $suite "*) tree ;;
	esac
	[ -z "$failures" ] || { say "$suite: failed:$failures"; return 1; }
}

[ $# -ge 3 ] || usage
build=$1 tarball=$2 dir=$3
shift 3
[ -x "$build/rtrs-server" ] || { say "${0##*/}: $build: no build directory with rtrs-server"; exit 2; }
[ -f "$tarball" ] || { say "${0##*/}: $tarball: no such tarball; make dist makes one"; exit 2; }
[ $# -gt 0 ] || set -- "${suites[@]}"
for_suites "$@"
case $failed in
'' | ' sid') ;;
*) exit 1 ;;
esac
