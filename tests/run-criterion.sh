#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run one Criterion program.  Criterion's exit status does not see what a sanitizer reports from a
# test's process (a leak is printed and the run passes), so reports go to files, and a file fails.
set -u
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=1:log_path=$dir/report
LSAN_OPTIONS=${LSAN_OPTIONS:+$LSAN_OPTIONS:}log_path=$dir/report
UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}print_stacktrace=1:log_path=$dir/report
MALLOC_PERTURB_=${MALLOC_PERTURB_:-165}
export ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS MALLOC_PERTURB_

# make check-valgrind: one empty file for each process that has nothing to report.
# shellcheck disable=SC2086 # words
[ -z "${VALGRIND_TESTS-}" ] ||
	set -- $VALGRIND_TESTS --trace-children=yes --log-file="$dir/report.%p" "$@"

timeout "${CRITERION_TIMEOUT:-120}" "$@"
status=$?

for report in "$dir"/report*; do
	[ -s "$report" ] || continue
	cat "$report"
	echo "$1: a sanitizer or valgrind reported the above"
	status=1
done
exit $status
