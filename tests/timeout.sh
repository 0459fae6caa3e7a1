# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# For run-*.sh, which source it: how long a test may run, and what is said of one that was not done
# then.

# test_timeout SECONDS: printed for this build and machine (speed.sh); SECONDS is for a plain one on
# a fast one.
test_timeout() {
	limit=$(($1 * $(cat tests/speed 2>/dev/null || echo 100) / 100))
	case ${SANITIZERS:-no} in
	no) ;;
	*) limit=$((limit * 4)) ;;
	esac
	[ -z "${VALGRIND_TESTS-}" ] || limit=$((limit * 8))
	echo "${TEST_TIMEOUT:-$limit}"
}

# test_timeout_say NAME SECONDS STATUS SINCE: of timeout(1), which had to kill if it is 137; a test
# may end with these by itself, and then it was not long since @SINCE, of date +%s.
test_timeout_say() {
	[ $(($(date +%s) - $4)) -ge "$2" ] || return 0
	case $3 in
	124 | 137) echo "TIMED OUT: $1 was not done after $2 s" ;;
	esac
}
