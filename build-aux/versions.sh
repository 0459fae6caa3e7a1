#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The version policy (doc/versions.md): the programs of a build meet those of an earlier commit, in the tests of
# tests/versions: the wire, what an end refuses, control, command lines and files, defaults, state files,
# identities, client processes that are killed.
# ./check.sh --full=versions runs this.
#
#	versions.sh BUILD DIR [TEST...]
#
# BUILD is a build directory of this tree.  DIR gets the earlier commit and its build, which is kept and used again,
# and the output.  The commit is $BEFORE, by default the last tag, or, as long as there is none, a commit that
# stands for the version before the first one.  With CCACHE_DIR ccache compiles.  Status 77: this is no clone, or
# lacks the commit.
set -eu -o pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=build-aux/setup.sh
. "$top/build-aux/setup.sh"

tests=(wire refusals control commands defaults state identity kept)
first=c5df71a124e8d3494c4e18b9cc982ac2f3112789

usage() {
	say "usage: ${0##*/} BUILD DIR [TEST...]"
	say "tests: ${tests[*]}"
	exit 2
}

skip() {
	say "skipped: versions: $*"
	exit 77
}

# commit_before: the commit, in full.
commit_before() {
	local name=${BEFORE-}

	[ -n "$name" ] || name=$(git -C "$top" describe --tags --abbrev=0 HEAD^ 2>/dev/null) || name=$first
	git -C "$top" rev-parse -q --verify "$name^{commit}"
}

# build_before COMMIT: in $dir/COMMIT.  The commit names the packages that it is built of.
build_before() {
	local at=$dir/$1 packages

	[ ! -e "$at/built" ] || return 0
	rm -rf "$at"
	mkdir -p "$at/build"
	git -C "$top" archive "$1" | tar -C "$at" -x
	# shellcheck disable=SC2016 # the other shell's
	packages=$(bash -c '. "$0" && echo $packages_build' "$at/build-aux/setup.sh")
	# shellcheck disable=SC2086 # a list of words
	( install_packages $packages )
	( cd "$at" && quietly "$dir/autoreconf.log" autoreconf -fi ) &&
		( cd "$at/build" && quietly "$dir/configure.log" ../configure ${CCACHE_DIR:+"CC=ccache gcc"} &&
			quietly "$dir/make.log" make -j"$(nproc)" ) || return 1
	: >"$at/built"
}

[ $# -ge 2 ] || usage
build=$1 dir=$2
shift 2
[ $# -gt 0 ] || set -- "${tests[@]}"
for test; do
	[ -f "$top/tests/versions/$test.sh" ] || usage
done
[ -x "$build/rtrs-server" ] || die "$build: no build directory with rtrs-server"
build=$(cd "$build" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
commit=$(commit_before) || skip "no commit ${BEFORE:-$first} here: give another one as BEFORE=, in a clone"
build_before "$commit" || die "commit $commit does not build"
say "before: $(git -C "$top" log -1 --format='%h of %as' "$commit")"

failed=''
for test; do
	since=$SECONDS
	status=0
	( cd "$build" && BEFORE_BUILD=$dir/$commit/build "$top/tests/run-test.sh" bash \
		"$top/tests/versions/$test.sh" </dev/null >"$dir/$test.log" 2>&1 ) || status=$?
	case $status in
	0) say "$test: passed, $((SECONDS - since)) s" ;;
	77) say "$test: skipped: $(sed -n 's/^SKIP: //p' "$dir/$test.log" | head -n 1)" ;;
	*)
		tail -n 60 "$dir/$test.log" >&2
		say "$test: failed   (all of its output: $dir/$test.log)"
		failed+=" $test"
		;;
	esac
done
[ -z "$failed" ]
