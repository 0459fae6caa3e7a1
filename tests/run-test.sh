#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run one test for so long at most:
#
#	run-test.sh [bash] PROGRAM [ARGUMENT...]
#
# "bash" is for scripts.  Others are run in valgrind where $VALGRIND_TESTS says so.  A test that is
# not done in time fails, and its log says so with its name.  That is no judgement of how fast
# something is: it is for what hangs, hence far above what any healthy run takes on a slow machine,
# and more with what makes programs slow.
#
# TEST_TIMEOUT   seconds, in place of all that
# SANITIZERS     as configured; make check sets it
set -u
. "$(dirname "$0")/timeout.sh"
limit=$(test_timeout 900) since=$(date +%s)
# A simulation says in which of its tests it was aborted; a script cleans up when it is terminated.
signal=ABRT own=''
if [ "$1" = bash ]; then
	signal=TERM
	name=$2
	# What a script mounts is its own: a copy in the namespace of another test would keep the
	# device busy.
	own='unshare --mount --propagation slave'
	$own true 2>/dev/null || own=''
else
	name=$1
	# shellcheck disable=SC3045 # dash has it
	ulimit -c 0
	# shellcheck disable=SC2086 # words
	[ -z "${VALGRIND_TESTS-}" ] || set -- $VALGRIND_TESTS "$@"
fi
status=0
# shellcheck disable=SC2086 # words
timeout -s $signal -k 30 "$limit" $own "$@" || status=$?
test_timeout_say "$name" "$limit" $status "$since"
exit $status
