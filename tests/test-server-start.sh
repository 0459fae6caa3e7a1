#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What rtrs-server says at its start: each export with its path, size, mode and block size, and who
# can reach it; each line with the time, but where the journal writes that down.  Its threads have
# names.
. ./tests/functions.sh
requires_server

cd "$tmp" || exit
truncate -s 1536M big
truncate -s 512 tiny

# told REGEX: the server's log has exactly one such line.
told() {
	[ "$(grep -c -E -- "$1" "$server_log")" -eq 1 ] || fail "not one line with '$1'"
}

start_server "a=$tmp/big" "b=$tmp/tiny,readonly"
told "info: a: exports file '$tmp/big', 1610612736 bytes \(1\.5 GiB\), rw, buffered, block size 512 \(logical\) and [1-9][0-9]* \(physical\)$"
told "info: b: exports file '$tmp/tiny', 512 bytes \(512 bytes\), readonly, buffered, "
told 'write buffers are protected'
must_fail grep -q 'without --allow' "$server_log"

# Every line of the log has the time, with milliseconds and the zone.
must_fail grep \
	-v -E '^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}[+-][0-9]{2}:[0-9]{2} rtrs-server: (info|warning): |listening on )' \
	"$server_log"
stamp=$(grep -m 1 'rtrs-server: ' "$server_log" | cut -d' ' -f1)
age=$(($(date +%s) - $(date -d "$stamp" +%s)))
[ $age -ge 0 ] && [ $age -le 120 ] || fail "stamped $age s ago: $stamp"

cat "/proc/$server_pid/task/"*/comm >names
# valgrind is the program there.
main=rtrs-server
[ -z "${VALGRIND_TESTS-}" ] || main=$(cat "/proc/$server_pid/comm")
grep -q -x "$main" names
grep -q -x 'reactor 1' names
must_fail grep -v -E "^($main|reactor [1-9]|end|rtrs-log|worker|iou-.*)\$" names

stop_server "$server_pid"
if dd if=/dev/zero of=probe bs=4096 count=1 oflag=direct 2>dd.out; then
	start_server "a=$tmp/big,direct"
	told 'a: exports .*, rw, direct, '
	stop_server "$server_pid"
fi

# Other machines can come in: said once, however many addresses.
warning='warning: --listen tcp://0\.0\.0\.0:0 without --allow: .*--allow=ADDR'
start_server --listen tcp://127.0.0.1:0 --listen tcp://0.0.0.0:0 \
	--listen tcp://0.0.0.0:0 "a=$tmp/big"
told "$warning"
stop_server "$server_pid"
# Asked for.
start_server --listen tcp://0.0.0.0:0 --allow 0.0.0.0/0 "a=$tmp/big"
must_fail grep -q 'without --allow' "$server_log"
stop_server "$server_pid"
# Who has no key does not get in, unless a listener lets everybody in.
(umask 077; "$top_builddir/rtrs-psk" gw >keys)
start_server --listen tcp://0.0.0.0:0 --auth=require --auth-psk="$tmp/keys" "a=$tmp/big"
must_fail grep -q 'without --allow' "$server_log"
stop_server "$server_pid"
start_server --listen tcp://0.0.0.0:0 --auth-psk="$tmp/keys" "a=$tmp/big"
must_fail grep -q 'without --allow' "$server_log"
stop_server "$server_pid"
start_server --listen tcp://0.0.0.0:0 --auth=psk --auth-psk="$tmp/keys" "a=$tmp/big"
told "$warning"
stop_server "$server_pid"

# The journal has the time itself, and takes the level from a prefix.
: >journal
mkfifo ready
# shellcheck disable=SC2094 # what it is, not what is in it
JOURNAL_STREAM=$(stat -c %d:%i journal) "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --ready-fd 9 \
	"a=$tmp/big" 2>journal >listening 9>ready &
cleanup_fn stop_process $!
read -r -t "$TIMEOUT_S" _ <ready
grep -q "^<6>a: exports file '$tmp/big', " journal
must_fail grep -v '^<[3467]>' journal
