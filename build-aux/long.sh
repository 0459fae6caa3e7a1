#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A slice of a run that takes longer than anybody waits: make long RUN=NAME MINUTES=N.  Slices add up.  Each one begins
# where the one before ended, by the table of doc/long.md, and adds its line there if it has passed.
#
#	long.sh BUILD TABLE NAME MINUTES
#
# BUILD is a build directory whose tests are built, for fuzz-* one of --enable-fuzzers.  With an empty NAME this says
# which runs there are, what they aim at, and how far they are.
set -eu -o pipefail

# A run: what it counts, and how many of them it aims at.
declare -A counts=(
	[simulation]="operations 1000000000" [fence]="operations 100000000" [nbd]="operations 100000000"
	[share]="operations 100000000" [kept]="operations 100000000" [live]="operations 100000000"
	[soak]="minutes 480" [idle]="minutes 120" [mutants]="mutants 32000"
)
for name in auth ctl nbd rnbd-msg rtrs-msg rtrs-req rtrsctl tcp-stream tls-stream; do
	counts[fuzz-$name]="inputs 100000000"
done

say() {
	printf '%s\n' "$*" >&2
}

die() {
	say "${0##*/}: $*"
	exit 2
}

# column NAME N: what stands in that column of the slices of a run.  (The table of the aims has three columns.)
column() {
	awk -F ' *\\| *' -v run="$1" -v n="$2" 'NF == 8 && $2 == run { print $(n + 1) }' "$table"
}

# sum NAME: how many it has counted so far.
sum() {
	column "$1" 3 | awk '{ n += $1 } END { printf "%d\n", n }'
}

# first NAME: the seed after those that were run.
first() {
	local seed=0 n
	while read -r n; do
		seed=$((seed + n))
	done < <(column "$1" 2)
	echo $((seed + 1))
}

list() {
	local name unit aim

	for name in $(printf '%s\n' "${!counts[@]}" | sort); do
		read -r unit aim <<<"${counts[$name]}"
		printf '%-16s %12d of %12d %s\n' "$name" "$(sum "$name")" "$aim" "$unit"
	done
}

# simulated PROGRAM [TEST]: sets seeds and n.
simulated() {
	SIM_SEED=$seed SIM_SECONDS=$((60 * minutes)) "$@" | tee "$log"
	read -r seeds n < <(sed -n 's/^\([0-9]*\) seeds passed, \([0-9]*\) operations$/\1 \2/p' "$log")
}

# fuzzed TARGET: on each processor, each with a seed of its own.
fuzzed() {
	local jobs=() job status=0
	export srcdir FUZZ_RUNS=-1 FUZZ_TIMEOUT=$((60 * minutes + 600)) FUZZ_FLAGS=-max_total_time=$((60 * minutes))

	seeds=$(nproc)
	for ((job = 0; job < seeds; job++)); do
		FUZZ_SEED=$((seed + job)) sh "$srcdir/tests/run-fuzz.sh" "$1" >"$log.$job" 2>&1 &
		jobs+=($!)
	done
	for job in "${!jobs[@]}"; do
		wait "${jobs[$job]}" || { status=$?; tail -n 60 "$log.$job" >&2; }
	done
	[ $status -eq 0 ] || return $status
	n=$(sed -n 's/^Done \([0-9]*\) runs in .*/\1/p' "$log".* | awk '{ n += $1 } END { printf "%d\n", n }')
}

# lasting TEST: it takes SOAK_SECONDS, or IDLE_SECONDS.
lasting() {
	TEST_TIMEOUT=$((60 * minutes + 600)) SOAK_SECONDS=$((60 * minutes)) IDLE_SECONDS=$((60 * minutes)) \
		bash "$srcdir/tests/run-test.sh" bash "$srcdir/tests/$1.sh" >"$log" 2>&1 ||
		{ tail -n 60 "$log" >&2; return 1; }
	seeds=0 n=$minutes
}

# Of all that operators make, in one order; four of five must be killed.
mutated() {
	env -u MAKEFLAGS make mutate-sample SUBSYSTEM= COUNT=1000000 \
		MUTATE_FLAGS="--first $((seed - 1)) --minutes $minutes --rate 80" | tee "$log"
	n=$(sed -n 's/.* \([0-9]*\) tried$/\1/p' "$log") seeds=$n
}

[ $# -eq 4 ] || { say "usage: ${0##*/} BUILD TABLE NAME MINUTES"; exit 2; }
build=$1 table=$(realpath "$2") name=$3 minutes=$4
export srcdir=${srcdir:-..}
[ -f "$table" ] || die "$table: no such file; expected doc/long.md"
[ -n "$name" ] || { list; exit 0; }
[ -n "${counts[$name]-}" ] || die "$name: no such run; expected one of: $(printf '%s\n' "${!counts[@]}" | sort | xargs)"
[[ $minutes =~ ^[1-9][0-9]*$ ]] && [ "$minutes" -le 120 ] || die "MINUTES=$minutes: expected 1 to 120"
cd "$build"
seed=$(first "$name")
log=$(mktemp -d)/log commit=$(git -C "$srcdir" rev-parse --short=8 HEAD)
git -C "$srcdir" diff --quiet HEAD -- src tests || die "src or tests differ from the commit $commit: commit them first"
seeds='' n=''
case $name in
simulation) simulated ./test-sim-random ;;
fence) simulated ./test-sim-fence random ;;
nbd) simulated ./test-sim-nbd-random ;;
share) simulated ./test-sim-share random ;;
kept) simulated ./test-sim-kept-random ;;
live) simulated ./test-sim-live random_sequences ;;
soak) lasting test-nbd-soak ;;
idle) lasting test-idle-long ;;
mutants) mutated ;;
fuzz-*) fuzzed "./tests/fuzz/$name.fuzz" ;;
esac
[ -n "$n" ] && [ "$n" -gt 0 ] || die "$name: it does not say how many ${counts[$name]% *} it tried; its output: $log"
rm -rf "${log%/log}"
printf '| %s | %s | %s | %s | %s | %s |\n' "$name" "$seeds" "$n" "$minutes" "$commit" "$(date -u +%F)" >>"$table"
list | grep "^$name "
