#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wait_until hides what its command prints, but not why the test ends inside the command.
. ./tests/functions.sh

# ends_with STATUS LINE SCRIPT: a test with this script ends so, LINE is what it prints last.
ends_with() {
	local status=0
	bash -c ". ./tests/functions.sh; $3" >"$tmp/said" 2>/dev/null || status=$?
	cat "$tmp/said"
	[ $status -eq "$1" ] || fail "ended with status $status instead of $1"
	[ "$(tail -n 1 "$tmp/said")" = "$2" ] || fail "the last line is not '$2'"
	must_fail grep hidden "$tmp/said"
}
inner='inner() { echo hidden; fail why; }; between() { echo hidden; wait_until in inner; }'
ends_with 1 'FAIL: why' "$inner; wait_until out inner"
ends_with 1 'FAIL: why' "$inner; wait_until out between"
ends_with 77 'SKIP: why' 'inner() { echo hidden; skip why; }; wait_until out inner'
ends_with 1 'FAIL: waited 0 s for out: false' 'TIMEOUT_S=0; wait_until out false'
# It has the command's logs, too.
# shellcheck disable=SC2016 # for the inner shell
ends_with 1 'of the log' \
	'inner() { echo of the log >"$tmp/x.log"; fail why; }; wait_until out inner'
# Behind a wait all is as before.
# shellcheck disable=SC2016 # for the inner shell
ends_with 0 'behind' \
	'inner() { echo hidden; }; wait_until out inner; [ -z "$waiting" ]; echo behind'

# A process is ended by its number only while it is ours: a number comes again.
sleep 1000 &
ours=$!
is_child $ours
( is_child $ours ) || fail "not in a subshell"
! is_child 1 || fail "the first process of all"
! is_child $PPID || fail "the parent"
! is_child 99999999 || fail "no process"
kill_process $ours
! is_child $ours || fail "it has ended"
cp "$(command -v sleep)" "$tmp/a) S 1 (b"
"$tmp/a) S 1 (b" 1000 &
ours=$!
wait_until "its name" grep -q -F 'a) S 1 (b' "/proc/$ours/stat"
is_child $ours || fail "a name with brackets"
kill_process $ours
# The status is asked for once: a shell forgets it when the number comes again.
true &
ours=$!
expect_exit $ours 0
wait() { fail "waited again"; }
stop_process $ours
unset -f wait
