#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Build and run all tests.  The last line counts them.  See tests/README.

# Of --full, in their order.
all_parts="check quickstart guests commits distcheck clang asan tsan valgrind fuzz fuzz-nbd fuzz-tls simulation fence nbd share live kept auth soak"
all_parts+=" mutants rbd lint packages fleet newest versions"

usage() {
	cat <<USAGE
usage: ./check.sh [--full[=PART,...]]

Install what is missing (Debian packages; with sudo when you are not root),
build, and run make check, the quickstart, and a selection of make check-guest,
which fetches two kernels from Debian once (280 MB each; --full a third one).
Exits with 1 when anything failed.

  --full   all guests, each commit by itself, clang, make distcheck, ASan+UBSan,
           TSan, valgrind, lint, long fuzz and simulation runs, each below
           "build/full, all of it", a sample of the mutants, packages, the
           newest releases and their clients, the guide from empty machines,
           an earlier version
  --full=PART,...  only these parts of it:
$(fold -s -w 68 <<<"$all_parts" | sed 's/^/           /; s/ *$//')
  --help   show this

Variables, with their defaults:
FUZZ_SECONDS, SOAK_SECONDS   how long a fuzz target, the soak run [60, 3600]
FUZZ_NBD_RUNS, FUZZ_TLS_RUNS  how many inputs the parts try [10000000]
SIM_SEEDS      how many random runs of the simulation --full makes [100000]
GUEST_CACHE    where the kernels of guests are kept [tests/guest/cache]
COMMITS_SINCE  --full builds the commits behind this revision [the last tag]
BEFORE         the commit of the part versions [the last tag, or c5df71a1]
USAGE
}

set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=build-aux/setup.sh
. "$top/build-aux/setup.sh"

full=no parts=$all_parts
while [ $# -gt 0 ]; do
	case $1 in
	--full) full=yes ;;
	--full=*) full=yes parts=${1#*=} parts=${parts//,/ } ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; die "unknown argument: $1" ;;
	esac
	shift
done

# among WORD LIST
among() {
	case " $2 " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# wants PART
wants() {
	among "$1" "$parts"
}

[ -n "${parts// /}" ] || die "--full=: expected some of: $all_parts"
for part in $parts; do
	among "$part" "$all_parts" || die "--full=$part: no such part; expected some of: $all_parts"
done

# Whatever a path may have in it is tried by what --full builds.
full_dir="full, all of it"

passed=0 failed=0 skipped=0 results=() endings=() failures=() counted_s=0 kernels_pid=''

# minutes SECONDS
minutes() {
	printf '%d:%02d min' $(($1 / 60)) $(($1 % 60))
}

# took TEXT: what was done since the last one, and how long that took.
took() {
	results+=("$(printf '%-12s ' "$1")$(minutes $((SECONDS - counted_s)))")
	counted_s=$SECONDS
}

# count NAME PASSED FAILED SKIPPED: of what was done since the last one.
count() {
	passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
	took "$(printf '%-12s %4d passed, %d failed, %d skipped,' "$@")"
}

# ending LOG: where a failed test gave up, by its own words or by its trace; else its last lines.
ending() {
	awk '{ line[NR] = $0 }  /^FAIL: / || /^\++ on_exit$/ { at = NR; exit }
		END { if (!at) at = NR; for (i = at > 12 ? at - 12 : 1; i <= at; i++) print line[i] }' "$1"
}

# one NAME LOG COMMAND...: something that counts as one test.
one() {
	local name=$1 log=$2
	shift 2
	printf '\n== %s\n' "$name"
	if quietly "$log" "$@"; then
		count "$name" 1 0 0
	else
		count "$name" 0 1 0
	fi
}

# suite NAME DIR TARGET [MAKE-ARGUMENT...]: a target that leaves automake's test-suite.log.
suite() {
	local name=$1 dir=$2 target=$3 counts status
	shift 3
	printf '\n== %s: make %s\n' "$name" "$target"
	rm -f "$dir/test-suite.log"
	# One more than processors: tests mostly wait, and their time-outs are for machines that do no
	# more.
	make -C "$dir" -k -j$(($(nproc) + 1)) "$target" "$@" 2>&1 </dev/null | tee "$dir/$target.log" |
		grep -E '^(PASS|FAIL|SKIP|XPASS|XFAIL|ERROR):'
	status=${PIPESTATUS[0]}
	if [ ! -f "$dir/test-suite.log" ]; then
		tail -n 60 "$dir/$target.log"
		say "make $target did not come to the tests; all of its output: $dir/$target.log"
		count "$name" 0 1 0
		return
	fi
	# XPASS and ERROR are failures.
	counts=$(awk '/^# (PASS|XFAIL):/ { p += $3 }  /^# (FAIL|XPASS|ERROR):/ { f += $3 }
		/^# SKIP:/ { s += $3; exit }  END { print p + 0, f + 0, s + 0 }' <(sort "$dir/test-suite.log"))
	# shellcheck disable=SC2086 # three words
	set -- $counts
	# Failed tests by their count; if make failed for another reason, that is one more.
	[ "$status" -eq 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"
	[ "$2" -eq 0 ] || cat "$dir/test-suite.log"
	while IFS= read -r test; do
		failures+=("failed in $name: $test")
		endings+=("$(printf '\n== %s gave up here:\n' "$test"; ending "$dir/${test%.*}.log")")
	done < <(sed -n 's/^\(FAIL\|ERROR\): \([^ ]*\).*/\2/p' "$dir/$target.log" | sort -u)
	sed -n 's/^SKIP: \([^ ]*\).*/\1/p' "$dir/$target.log" | while IFS= read -r test; do
		printf 'skipped: %s: %s\n' "$test" \
			"$(sed -n 's/^SKIP: //p' "$dir/${test%.sh}.log" | head -n 1)"
	done
	count "$name" "$@"
}

# guests_wanted: their packages, and in the background the kernels of the selection, which take the
# network for longer than the processor.  What is not there in the end make check-guest makes, or
# says why not: where there are no guests their tests are skipped, and counted.
guests_wanted() {
	local cache=${GUEST_CACHE:-$top/tests/guest/cache} series

	# shellcheck disable=SC2086 # a list of words
	( install_packages $packages_guest ) || { say "Guests cannot be had here."; return; }
	( cd "$build" && for series in 6.1 6.12; do
		nice -n 19 "$top/tests/guest/prepare.sh" $series "$cache/$series"
	done ) >"$build/kernels.log" 2>&1 </dev/null &
	kernels_pid=$!
}

# denials DIR: counts what the filters of all servers of the tests in DIR denied: nothing.
denials() {
	local servers denied

	read -r servers denied < <(find "$1/tests" "$1" -maxdepth 1 -name '*.log' -exec \
		grep -h '^filtered servers: ' {} + |
		awk '{ servers += $3; denied += $NF } END { print servers + 0, denied + 0 }')
	say "$servers servers had a filter of their system calls, which denied $denied"
	# A build without the filter has none to count.
	if grep -q '^#define HAVE_SECCOMP 1' "$1/config.h"; then
		if [ "$denied" -eq 0 ] && [ "$servers" -gt 0 ]; then
			count denials 1 0 0
		else
			count denials 0 1 0
		fi
	else
		count denials 0 0 1
	fi
}

# configured NAME [CONFIGURE-ARGUMENT...]: build the unpacked tarball in a directory of its own.
configured() {
	local name=$1
	dir=$build/$full_dir/$1
	shift
	printf '\n== %s: configure %s\n' "$name" "$*"
	rm -rf "$dir"
	mkdir "$dir" || die "cannot create $dir"
	if ! ( cd "$dir" && quietly configure.log "../$tarball/configure" "$@" &&
		quietly make.log make -j"$(nproc)" ); then
		count "$name" 0 1 0
		return 1
	fi
}

# commits: what is committed since $COMMITS_SINCE builds by itself, commit by commit, tests
# included.
commits() {
	local since=${COMMITS_SINCE-} tree="$build/$full_dir/commits" commit log n=0 bad=0

	printf '\n== commits\n'
	[ -n "$since" ] || since=$(git -C "$top" describe --tags --abbrev=0 2>/dev/null)
	if [ -z "$since" ] ||
		! git -C "$top" rev-parse -q --verify "$since^{commit}" >/dev/null; then
		say "skipped: commits: no tag or COMMITS_SINCE to begin with, or this is no clone"
		count commits 0 0 1
		return
	fi
	git clone -q "$top" "$tree" && mkdir "$tree/build" || die "cannot clone $top"
	for commit in $(git -C "$top" rev-list --reverse "$since..HEAD"); do
		log="$build/$full_dir/commit-$commit.log"
		if one_commit "$tree" "$commit" >"$log" 2>&1; then
			n=$((n + 1))
			rm "$log"
		else
			tail -n 20 "$log"
			say "does not build: $(git -C "$top" log -1 --format='%h %s' "$commit")   (all of its output: $log)"
			bad=$((bad + 1))
		fi
	done
	count commits $n $bad 0
}

# one_commit TREE COMMIT: in the same build directory again and again, which is quick where little
# has changed.
one_commit() (
	cd "$1" && git checkout -q "$2" || exit 1
	[ -x configure ] || autoreconf -fi || exit 1
	cd build || exit 1
	[ -f Makefile ] || ../configure --enable-gcc-warnings || exit 1
	make -j"$(nproc)" && make -j"$(nproc)" check TESTS=
)

# distcheck TARBALL NAME: of what is unpacked from it, in /tmp: libtool cannot install into a path
# with a space, and distcheck installs beside what it builds.
distcheck() {
	local tmp status=0

	tmp=$(mktemp -d /tmp/rtrs-distcheck.XXXXXX) || return 1
	tar -C "$tmp" -xJf "$1" && mkdir "$tmp/build" &&
		( cd "$tmp/build" && "../$2/configure" && make distcheck VERBOSE=1 ) || status=1
	# What distcheck leaves of a failure cannot be written to.
	chmod -R u+w "$tmp"
	rm -rf "$tmp"
	return $status
}

# versions: the programs of an earlier commit and those of this one.
versions() {
	local status=0

	printf '\n== versions\n'
	"$top/build-aux/versions.sh" "$build" "$build/$full_dir/versions" || status=$?
	case $status in
	0) count versions 1 0 0 ;;
	77) count versions 0 0 1 ;;
	*) count versions 0 1 0 ;;
	esac
}

# debian NAME WHAT...: packages.sh or fleet.sh of a tarball, newest.sh of a build directory and a tarball, in one
# directory, so that packages are built once.  In /tmp, because dpkg-buildpackage has its trouble with a space in a path.
debian() {
	local status=0

	printf '\n== %s\n' "$1"
	[ -n "${debian_dir-}" ] || debian_dir=$(mktemp -d /tmp/rtrs-packages.XXXXXX) ||
		die "cannot make a directory for packages"
	"$top/build-aux/$1.sh" "${@:2}" "$debian_dir" || status=$?
	cp "$debian_dir"/*.log "$build/$full_dir" 2>/dev/null
	case $status in
	0) count "$1" 1 0 0 ;;
	77) count "$1" 0 0 1 ;;
	*) count "$1" 0 1 0 ;;
	esac
}

# shellcheck disable=SC2086 # lists of words
{
	packages="$packages_build $packages_quickstart $packages_check"
	[ $full = no ] || packages="$packages $packages_full"
	install_packages $packages
	( install_packages $packages_wanted ) || say "The build does without: $packages_wanted"
}
took packages
build_tree --enable-gcc-warnings
took build
! wants guests || guests_wanted
# Other parts run what this one builds.
quietly "$build/programs.log" make -C "$build" -j"$(nproc)" check TESTS= ||
	die "the tests do not build"
took programs
wants check && suite check "$build" check && denials "$build"
wants quickstart && one quickstart "$build/quickstart.log" "$top/quickstart.sh"
[ $full = yes ] || export GUEST_SELECTION=yes
if wants guests; then
	[ -z "$kernels_pid" ] || wait "$kernels_pid" || say "see $build/kernels.log"
	took kernels
	suite guests "$build" check-guest
fi

if [ $full = yes ]; then
	export SLOW_TESTS=yes
	tarball=$(make_variable PACKAGE_TARNAME)-$(make_variable PACKAGE_VERSION)
	rm -rf "${build:?}/$full_dir"
	mkdir "$build/$full_dir" || die "cannot create $build/$full_dir"
	# From the tarball, because a source tree that was configured in place refuses other builds.
	quietly "$build/dist.log" make -C "$build" dist || die "make dist failed"
	tar -C "$build/$full_dir" -xJf "$build/$tarball.tar.xz" ||
		die "cannot unpack $tarball.tar.xz"

	wants commits && commits
	wants distcheck &&
		one distcheck "$build/$full_dir/distcheck.log" distcheck "$build/$tarball.tar.xz" \
			"$tarball"
	wants clang && configured clang CC=clang --enable-gcc-warnings && suite clang "$dir" check
	wants asan && configured asan --enable-gcc-warnings --enable-sanitizers=address,undefined &&
		SIM_SEEDS=1000 suite asan "$dir" check
	wants tsan && configured tsan --enable-gcc-warnings --enable-sanitizers=thread &&
		suite tsan "$dir" check
	wants valgrind && configured valgrind --enable-gcc-warnings &&
		suite valgrind "$dir" check-valgrind
	wants fuzz &&
		configured fuzz CC=clang --enable-fuzzers --enable-sanitizers=address,undefined &&
		one fuzz "$dir/fuzz.log" make \
			-C "$dir" check-fuzz "FUZZ_SECONDS=${FUZZ_SECONDS:-60}"
	wants fuzz-nbd && configured fuzz-nbd CC=clang --enable-fuzzers &&
		one fuzz-nbd "$dir/fuzz-nbd.log" make -C "$dir" check-fuzz-nbd \
			"FUZZ_NBD_RUNS=${FUZZ_NBD_RUNS:-10000000}"
	wants fuzz-tls && configured fuzz-tls CC=clang --enable-fuzzers &&
		one fuzz-tls "$dir/fuzz-tls.log" make -C "$dir" check-fuzz-tls \
			"FUZZ_TLS_RUNS=${FUZZ_TLS_RUNS:-10000000}"
	wants simulation &&
		one simulation "$build/$full_dir/sim.log" env "SIM_SEEDS=${SIM_SEEDS:-100000}" \
			"$build/test-sim-random"
	wants fence &&
		one fence "$build/$full_dir/sim-fence.log" env "SIM_SEEDS=${SIM_SEEDS:-100000}" \
			"$build/test-sim-fence" random
	wants nbd &&
		one nbd "$build/$full_dir/sim-nbd.log" env \
			"SIM_SEEDS=$((${SIM_SEEDS:-100000} / 8 + 1))" "$build/test-sim-nbd-random"
	wants share &&
		one share "$build/$full_dir/sim-share.log" env "SIM_SEEDS=${SIM_SEEDS:-100000}" \
			"$build/test-sim-share" random
	wants live &&
		one live "$build/$full_dir/sim-live.log" env \
			"SIM_SEEDS=$((${SIM_SEEDS:-100000} / 8 + 1))" "$build/test-sim-live" random_sequences
	wants kept &&
		one kept "$build/$full_dir/sim-kept.log" env \
			"SIM_SEEDS=$((${SIM_SEEDS:-100000} / 8 + 1))" "$build/test-sim-kept-random"
	wants auth && configured auth CC=clang --enable-fuzzers &&
		one auth "$dir/auth.log" make -C "$dir" check-auth
	wants soak &&
		TEST_TIMEOUT=$((${SOAK_SECONDS:=3600} + 600)) suite soak "$build" check \
			"SOAK_SECONDS=$SOAK_SECONDS" TESTS=tests/test-nbd-soak.sh
	wants mutants &&
		one mutants "$build/$full_dir/mutants.log" make -C "$build" mutate
	wants rbd &&
		RBD_FAULTS=20 RBD_FROZEN_S=10 RBD_SHARED=50 \
			TEST_TIMEOUT=7200 suite rbd "$build" check "TESTS=tests/test-rbd.sh \
				tests/test-rbd-faults.sh tests/test-rbd-others.sh \
				tests/test-rbd-shared.sh tests/test-rbd-silent.sh \
				tests/test-rbd-lock.sh tests/test-rbd-edges.sh \
				tests/test-rbd-keyring.sh"
	wants lint && one lint "$build/$full_dir/lint.log" make -C "$build" lint
	wants packages && debian packages "$build/$tarball.tar.xz"
	wants fleet && debian fleet "$build/$tarball.tar.xz"
	wants newest && debian newest "$build" "$build/$tarball.tar.xz"
	wants versions && versions
	rm -rf "${debian_dir-}"
fi

# At the end, where a log that somebody shortens still has them.
[ ${#endings[@]} -eq 0 ] || printf '%s\n' "${endings[@]}"
printf '\n'
[ ${#failures[@]} -eq 0 ] || printf '%s\n' "${failures[@]}" ''
printf '%s\n' "${results[@]}"
printf '%d passed, %d failed, %d skipped, %s\n' "$passed" "$failed" "$skipped" "$(minutes $SECONDS)"
[ "$failed" -eq 0 ]
