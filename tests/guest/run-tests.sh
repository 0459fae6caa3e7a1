#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make check-guest: run-tests.sh SCRIPT...  Runs each script inside a guest and leaves SCRIPT.log
# and SCRIPT.trs for automake's test-suite.log, in the current directory, which is the build's
# top.
#
# A line of a script says in what guest it runs, several lines in what guests:
#
#	# guest: kernel=6.12 smp=2 mem=2G nics=1 clock=host timeout=60
#
# with these defaults.  With clock=instructions the time of the guest passes by its instructions, so
# a busy host does not let time-outs of its devices pass (doc/verbs.md Q4); it runs on one thread,
# and several processors of 6.1 do not boot so.
# timeout is the script's own limit in seconds, and more on a slow machine (tests/speed.sh);
# scripts that agree in all the rest share one guest and run there one after the other (inside.sh).
# "# guest: host timeout=60" runs the script here: it starts guests by itself (rack.sh). GUEST_JOBS
# guests run at a time [1]. With GUEST_SELECTION=yes a line with the word "full" is left out; so is
# a script that has no other lines, and counts as skipped.
set -eu -o pipefail
shopt -s extglob

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jobs=${GUEST_JOBS:-1}
speed=$(cat tests/speed 2>/dev/null || echo 100)
boot_s=$((120 * speed / 100))
work=$(mktemp -d /tmp/rtrs-guests.XXXXXX)
nleft_out=0			# runs that only check.sh --full has

end() {
	local pid

	trap - EXIT
	for pid in $(jobs -p); do
		kill "$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$work"
}
trap end EXIT
trap 'exit 143' TERM INT HUP

die() {
	echo "run-tests.sh: $*" >&2
	exit 1
}

# read_line SCRIPT WORD...: one "# guest:" line becomes a test of the group of its shape.
read_line() {
	local script=$1 name word shape kernel=6.12 smp=2 mem=2G nics=1 clock=host
	local timeout=60 host='' left_out=no

	name=$(basename "$script" .sh)
	shift
	for word in "$@"; do
		case $word in
		kernel=7.3 | kernel=6.12 | kernel=6.1 | smp=[1-9] | mem=[1-9]G | nics=[0-9] | \
			clock=host | clock=instructions) eval "$word" ;;
		timeout=[1-9]*([0-9])) timeout=${word#*=} ;;
		host) host=yes ;;
		full) left_out=${GUEST_SELECTION:-no} ;;
		*) die "$script: unknown word in its '# guest:' line: $word" ;;
		esac
	done
	if [ "$left_out" = yes ]; then
		nleft_out=$((nleft_out + 1))
		return
	fi
	timeout=$((timeout * speed / 100))
	shape="kernel=$kernel smp=$smp mem=$mem nics=$nics clock=$clock"
	# Its logs are told from others of this script by the shape.
	[ -z "$host" ] || shape="host $name"
	mkdir -p "$work/$shape"
	printf '%s %s %s\n' "$timeout" "$name" "$(cd "$(dirname "$script")" && pwd)/$name.sh" \
		>>"$work/$shape/tests"
}

# run_group SHAPE: its tests, and what came out of each as a line of "$work/SHAPE/results".
run_group() {
	local shape=$1 dir=$work/$1 total=$boot_s status=0 limit name script pid

	while read -r limit name script; do
		total=$((total + limit + 60))
	done <"$dir/tests"
	: >"$dir/run.log"
	trap 'kill $pid; wait $pid; exit 143' TERM
	case $shape in
	host*)
		read -r limit name script <"$dir/tests"
		SECONDS=0
		timeout -k 30 "$limit" bash "$script" >"$dir/$name.log" 2>&1 &
		;;
	*)
		# shellcheck disable=SC2046 # words
		bash "$here/run.sh" $(sed 's/^/--/; s/ / --/g; s/=/ /g' <<<"$shape") --timeout $total \
			--results "$dir" "$here/inside.sh" >"$dir/run.log" 2>&1 &
		;;
	esac
	pid=$!
	wait $pid || status=$?
	case $shape in
	host*)
		echo $status >"$dir/$name.status"
		echo $SECONDS >"$dir/$name.seconds"
		;;
	esac
	while read -r limit name script; do
		one_result "$dir" "$name" $status
	done <"$dir/tests"
}

# one_result DIR NAME STATUS-OF-THE-GUEST: print it and leave it in NAME.result.
one_result() {
	local dir=$1 name=$2 status=$3 result=FAIL took=

	[ ! -f "$dir/$name.seconds" ] || took=", $(cat "$dir/$name.seconds") s"
	if [ -f "$dir/$name.status" ]; then
		status=$(cat "$dir/$name.status")
		case $status in
		0) result=PASS ;;
		77) result=SKIP ;;
		esac
	elif [ "$status" -eq 77 ]; then
		result=SKIP
		cat "$dir/run.log" >"$dir/$name.log"
	else
		{
			echo "---- the guest did not come to the end of this test (status $status)"
			cat "$dir/run.log"
		} >>"$dir/$name.log"
	fi
	echo "$result" >"$dir/$name.result"
	echo "$result: tests/guest/$name.sh ($(basename "$dir")$took)"
}

# leave SCRIPT: its .log and .trs out of all its groups.
leave() {
	local out=${1%.sh} name result dir copy=no recheck=no global=

	name=$(basename "$out")
	out=tests/guest/$name
	: >"$out.log"
	: >"$out.trs"
	for dir in "$work"/*/; do
		grep -q " $name /" "$dir/tests" || continue
		result=FAIL
		[ ! -f "$dir/$name.result" ] || result=$(cat "$dir/$name.result")
		echo ":test-result: $result $(basename "$dir")" >>"$out.trs"
		{ echo "==== $(basename "$dir"): $result"; cat "$dir/$name.log" || true; } >>"$out.log"
		case $result$global in
		PASS) global=PASS ;;
		PASS*) ;;
		SKIP | SKIPPASS | FAIL*) global=$result copy=yes ;;
		esac
	done
	if [ -z "$global" ]; then
		global=SKIP
		echo "SKIP: in check.sh --full" >"$out.log"
		echo ":test-result: SKIP" >"$out.trs"
		echo "SKIP: tests/guest/$name.sh (in check.sh --full)"
	fi
	[ "$global" != FAIL ] || recheck=yes
	printf ':global-test-result: %s\n:recheck: %s\n:copy-in-global-log: %s\n' \
		"$global" $recheck $copy >>"$out.trs"
}

for script in "$@"; do
	grep -q '^# guest:' "$script" || die "$script has no '# guest:' line"
	while read -r line; do
		# shellcheck disable=SC2086 # words
		read_line "$script" $line
	done < <(sed -n 's/^# guest://p' "$script")
done
[ $nleft_out -eq 0 ] || echo "$nleft_out runs of guests are left to check.sh --full"
mkdir -p tests/guest
for dir in "$work"/*/; do
	while [ "$(jobs -p -r | wc -l)" -ge "$jobs" ]; do
		wait -n || true
	done
	run_group "$(basename "$dir")" &
done
while [ -n "$(jobs -p -r)" ]; do
	wait -n || true
done
for script in "$@"; do
	leave "$script"
done
