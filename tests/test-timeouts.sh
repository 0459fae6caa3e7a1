#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A test that hangs is ended, fails, and is named; one that ends by itself keeps its status.
. ./tests/functions.sh
unset VALGRIND_TESTS SANITIZERS

tests=$top_srcdir/tests
mkdir "$tmp/a dir, x"
cd "$tmp/a dir, x" || exit
printf '#!/bin/sh\necho begun "$@"\nexec sleep 1000\n' >hangs
# shellcheck disable=SC2016 # the script's
printf '#!/bin/sh\nexit "${STATUS-0}"\n' >ends
# As a test that cleans up; functions.sh.
printf 'trap "echo cleaned up; exit 143" TERM\nsleep 1000 &\nwait\n' >script.sh
chmod +x hangs ends

# times_out SECONDS NAME COMMAND...: leaves its output in out.
times_out() {
	local seconds=$1 name=$2 status=0

	shift 2
	TEST_TIMEOUT=1 "$@" >out 2>&1 || status=$?
	cat out
	[ $status -eq 124 ] || fail "status $status instead of 124: $*"
	grep -q -x "TIMED OUT: $name was not done after $seconds s" out ||
		fail "does not name it: $*"
}

times_out 1 ./hangs sh "$tests/run-test.sh" ./hangs
times_out 1 ./script.sh sh "$tests/run-test.sh" bash ./script.sh
grep -q -x 'cleaned up' out || fail "it could not clean up"
# What Criterion 2.4.1 says of tests.
cat >criterion <<'END'
#!/bin/sh
[ "$*" = --verbose ] || exit 1
echo '[RUN ] list::empty'
echo '[RUN ] list::long'
echo '[PASS] list::empty: (0.00s)'
exec sleep 1000
END
chmod +x criterion
times_out 1 ./criterion sh "$tests/run-criterion.sh" ./criterion
[ "$(grep 'has not ended' out)" = "has not ended: list::long" ] || fail "does not name the test"
# What Criterion 2.4.1 says of an assertion in a .fini, with status 0.
cat >criterion <<'END'
#!/bin/sh
echo '[RUN ] list::empty'
echo '[PASS] list::empty: (0.00s)'
echo '[----] test-list.c:7: Assertion Failed'
END
sh "$tests/run-criterion.sh" ./criterion >out && fail "an assertion in a .fini passes"
mkdir -p tests/fuzz/corpus/x
cp hangs fuzz-x.fuzz
srcdir=. times_out 1 ./fuzz-x.fuzz sh "$tests/run-fuzz.sh" ./fuzz-x.fuzz

for status in 0 1 77 99; do
	for run in run-test.sh run-criterion.sh; do
		got=0
		STATUS=$status sh "$tests/$run" ./ends || got=$?
		[ $got -eq $status ] || fail "$run: status $got instead of $status"
	done
done

# More where programs or the machine are slow.
. "$tests/timeout.sh"
echo 250 >tests/speed
[ "$(test_timeout 10)" -eq 25 ]
rm tests/speed
[ "$(test_timeout 10)" -eq 10 ]
[ "$(SANITIZERS=no test_timeout 10)" -eq 10 ]
[ "$(SANITIZERS=thread test_timeout 10)" -gt 10 ]
[ "$(VALGRIND_TESTS=valgrind test_timeout 10)" -gt 10 ]
[ "$(VALGRIND_TESTS=valgrind TEST_TIMEOUT=5 test_timeout 10)" -eq 5 ]

speed=$(bash "$tests/speed.sh")
[ "$speed" -ge 100 ]
[ "$speed" -le 1600 ]

# No kind of test is left out.
for kind in '' SH_ CRIT_ FUZZ_; do
	grep -q "^${kind}LOG_COMPILER = .*/tests/run-[a-z]*\.sh" "$top_builddir/Makefile" ||
		fail "${kind}LOG_COMPILER is without a time-out"
done
