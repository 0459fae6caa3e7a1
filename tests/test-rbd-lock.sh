#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The lock file beside an image proves a dead owner, and nothing else: not in a copy of the state
# directory, nor after another boot; and an owner whose lock cannot be broken is waited for, by
# name.
. ./tests/functions.sh
requires_server
requires_plain_build
. "$top_srcdir/tests/ceph.sh"

# waits_for OWNER STATE [FLAG]: a server does not get the lock, and says whose it is.
waits_for() {
	local status=0
	timeout $((3 * TIMEOUT_S)) "$RTRS_SERVER" --strict --listen "unix:$tmp/second.sock" \
		--lock-timeout 1 --state-dir "$2" "d=$(image_spec disk)${3-}" >"$tmp/second" 2>&1 ||
		status=$?
	cat "$tmp/second"
	[ $status -eq 1 ] || fail "status $status"
	grep -F "is locked by $1: waited 1 s" "$tmp/second"
	[ "$(owner)" = "$1" ] || fail "the lock of $1 is broken"
}
owner() { rbd_ lock ls rbd/disk | awk '/^client/ { print $NF }'; }

ceph_start
ceph_user weak mon 'allow r' osd 'profile rbd pool=rbd'
image disk 8M
start_server --state-dir "$tmp/s1" "d=$(image_spec disk)"
first=$(owner)

# The owner lives, and a copy of the directory has its name and no lock.
cp -a "$tmp/s1" "$tmp/copy"
grep -F "$first " "$tmp"/copy/*lock*
waits_for "$first" "$tmp/copy"

# The owner is dead, and the file is of another boot: a copy on another host would be, too.
kill_process "$server_pid"
lock=$(grep -l -F "$first " "$tmp"/s1/*)
cp "$lock" "$tmp/line"
boot=$(cat /proc/sys/kernel/random/boot_id)
sed "s/$boot/$(cat /proc/sys/kernel/random/uuid)/" "$tmp/line" >"$lock"
waits_for "$first" "$tmp/s1"
cat "$tmp/line" >"$lock"

# The user may not fence the dead owner: it is not asked for its lock either.
waits_for "$first" "$tmp/s1" ",id=weak"
[ "$(grep -c "$first, cannot be broken: " "$tmp/second")" -eq 1 ]

# The same file, since the same boot, proves it dead.
cat "$tmp/line" >"$lock"
start_server --state-dir "$tmp/s1" "d=$(image_spec disk)"
grep -F "the lock of a server that was killed, $first, is broken" "$server_log"
