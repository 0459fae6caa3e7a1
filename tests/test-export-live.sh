#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Exports come and go by rtrsctl while others are used: fio verifies one of them all the time, and
# nobody but the users of a removed export notices.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd
requires nbdcopy --version
requires nbdsh --version

truncate -s 16M "$tmp/disk"
random_file "$tmp/image" $((4 << 20))
truncate -s 4M "$tmp/a" "$tmp/b"
socket=$tmp/control
start_server --control "$socket" --state-dir "$tmp/state" "disk=$tmp/disk"
first_pid=$server_pid first_log=$server_log
server=server=127.0.0.1:$server_port
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$socket")

start_nbdkit "$server" export=disk
disk=$uri disk_log=$nbdkit_log
timeout $((8 * TIMEOUT_S)) fio --name=all --ioengine=nbd --uri="$disk" --rw=randwrite --bs=4k \
	--size=16M --iodepth=16 --verify=crc32c --verify_state_save=0 --verify_fatal=1 \
	--verify_backlog=256 --loops=1000 --fsync=64 --output="$tmp/fio.log" &
fio=$!

# What comes is used, and what has gone is free for another server.
for i in {1..8}; do
	"${ctl[@]}" export add "new=$tmp/a"
	start_nbdkit "$server" export=new
	timeout "$TIMEOUT_S" nbdcopy "$tmp/image" "$uri"
	cmp "$tmp/image" "$tmp/a"
	must_fail timeout "$TIMEOUT_S" flock -n "$tmp/a" true
	stop_process "$nbdkit_pid"
	"${ctl[@]}" export remove new
	wait_until "the end of the lock ($i)" flock -n "$tmp/a" true
done

# Refusals, each with its reason, change nothing.
expect_failure 1 "export 'disk' is there already, with the path '.*': rtrsctl export set changes" \
	"${ctl[@]}" export add "disk=$tmp/a"
expect_failure 1 "cannot be opened: No such file" "${ctl[@]}" export add "none=$tmp/none"
expect_failure 1 "unknown flag 'redonly' .did you mean readonly" \
	"${ctl[@]}" export add "n=$tmp/a,redonly"
expect_failure 1 "there is no export 'none'" "${ctl[@]}" export remove none
expect_failure 1 "expected NAME=PATH" "${ctl[@]}" export add none
[ "$("${ctl[@]}" list | grep -c export)" = 1 ]

# Who has it open keeps it, until it is taken away.
"${ctl[@]}" export add "new=$tmp/a"
start_nbdkit "$server" export=new
mkfifo "$tmp/go" "$tmp/said"
nbdsh_run "$uri" <<END &
def line():
    with open("$tmp/go") as f:
        f.read()
def say(what):
    with open("$tmp/said", "w") as f:
        f.write(what + "\\n")
say("open")
line()
h.pwrite(b"\\1" * 4096, 0)
h.flush()
say("kept")
line()
try:
    h.pread(4096, 0)
    say("still there")
except nbd.Error:
    say("gone")
END
nbdsh=$!
hear() {
	local word
	read -r -t "$TIMEOUT_S" word <"$tmp/said"
	[ "$word" = "$1" ] || fail "said '$word', expected '$1'"
}
hear open
"${ctl[@]}" export remove new
"${ctl[@]}" export add "new=$tmp/b"
echo >"$tmp/go"
hear kept
[ "$(od -An -tx1 -N1 "$tmp/a")" = " 01" ]
# Who opens the name from now on gets the other export.
nbdsh_run "$uri" <<-'PY'
assert h.pread(1, 0) == b"\0"
h.pwrite(b"\2" * 4096, 0)
h.flush()
PY
[ "$(od -An -tx1 -N1 "$tmp/b")" = " 02" ]
[ "$(od -An -tx1 -N1 "$tmp/a")" = " 01" ]
"${ctl[@]}" export remove new
"${ctl[@]}" export kick new
echo >"$tmp/go"
hear gone
wait "$nbdsh"
wait_until "the end of both locks" flock -n "$tmp/a" flock -n "$tmp/b" true

# A second name of what is used, read-only, is the same storage.
"${ctl[@]}" export add "twin=$tmp/disk,readonly"
start_nbdkit "$server" export=twin
timeout "$TIMEOUT_S" nbdcopy "$uri" - >/dev/null
stop_process "$nbdkit_pid"
"${ctl[@]}" export remove twin

kill -0 "$fio" || { cat "$tmp/fio.log"; fail "fio has ended"; }
pkill -INT -P "$fio"			# timeout may keep it, see test-registration.sh
wait "$fio" || true		# it was interrupted
grep -q ' err= 0' "$tmp/fio.log" || { cat "$tmp/fio.log"; fail "fio has found an error"; }
must_fail grep -E 'lost|fail' "$disk_log"

# A server that stops gives up what it waits for, and tells who asked.
lock "$tmp/b"
"${ctl[@]}" export add "b=$tmp/b" 2>"$tmp/refused" &
add=$!
wait_line "$first_log" "'$tmp/b' is locked by"
"${ctl[@]}" list >/dev/null
stop_server "$first_pid"
expect_exit $add 1
grep -q 'the server stops' "$tmp/refused"
