#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run one Criterion program.  Criterion's exit status does not see what a sanitizer reports from a
# test's process (a leak is printed and the run passes), so reports go to files, and a file fails.
# One that hangs is ended as by run-test.sh, and its log names the tests that had begun.  (--timeout
# of Criterion 2.4.1 ends nothing.)
set -u
. "$(dirname "$0")/timeout.sh"
name=$1
limit=$(test_timeout 900) since=$(date +%s)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=1:log_path=$dir/report
LSAN_OPTIONS=${LSAN_OPTIONS:+$LSAN_OPTIONS:}log_path=$dir/report
UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}print_stacktrace=1:log_path=$dir/report
MALLOC_PERTURB_=${MALLOC_PERTURB_:-165}
export ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS MALLOC_PERTURB_

# make check-valgrind: one empty file for each process that has nothing to report, of another user,
# too, who cannot unlink the pipes of vgdb.  Threads need valgrind-uring.c to run beside a ring;
# copied, because LD_PRELOAD is split at spaces and colons.
if [ -n "${VALGRIND_TESTS-}" ]; then
	chmod 1777 "$dir" && cp .libs/valgrind-uring.so "$dir/" || exit 99
	# shellcheck disable=SC2086 # words
	set -- env LD_PRELOAD="$dir/valgrind-uring.so" \
		$VALGRIND_TESTS --vgdb=no --trace-children=yes --log-file="$dir/report.%p" "$@"
fi

# The words of Criterion are looked for below.
timeout -k 30 "$limit" env LC_ALL=C.UTF-8 LANGUAGE= "$@" --verbose >"$dir/out" 2>&1
status=$?
cat "$dir/out"
# "[RUN ] suite::test" of those without "[PASS] suite::test: (0.00s)" or the like, in colours or
# not.
case $status in
124 | 137)
	awk '{ gsub(/\033\[[0-9;]*m/, ""); sub(/:$/, "", $2); sub(/:$/, "", $3) }
		/^\[RUN *\]/ { run[$3] = 1 }
		/^\[(PASS|FAIL|SKIP)\]/ { delete run[$2] }
		END { for (test in run) print "has not ended: " test }' "$dir/out"
	;;
esac
test_timeout_say "$name" "$limit" $status "$since"

# What fails or ends in a .fini does not count for Criterion.
if [ $status -eq 0 ] &&
   grep -q -e ': Assertion Failed' -e 'during its setup or teardown' "$dir/out"; then
	echo "$name: an assertion failed after a test, or the program ended there"
	status=1
fi
for report in "$dir"/report*; do
	[ -s "$report" ] || continue
	cat "$report"
	echo "$name: a sanitizer or valgrind reported the above"
	status=1
done
exit $status
