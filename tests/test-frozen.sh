#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system that stops (frozen here) stops the requests for it and little else: exports
# elsewhere go on, new clients come in, a second SIGTERM exits at once; and when it goes on, so do
# its requests.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires_plain_build
requires nbdsh --version
requires nbdinfo --version
requires mke2fs -V
requires fsfreeze --version

ext4_in_tmpfs 100m 64M 16M "$tmp/mnt"
truncate -s 8M "$tmp/mnt/other"
for other in 1 2 3; do
	truncate -s 16M "$tmp/elsewhere$other"
done

thaw() { fsfreeze --unfreeze "$tmp/mnt" 2>/dev/null || true; }
cleanup_fn thaw

# A thread of the server, or a worker of one of its rings, is held in the kernel.
held() { grep -q '^State:.D' "/proc/$server_pid/task"/*/status; }

write_one() {
	nbdsh_run "$1" <<-'END'
	h.pwrite(b"a" * 4096, 0)
	END
}

# Writes, zeroings and trims in the frozen file system, more than a ring has workers for by default;
# ends when all of them are answered, well or not: nbdkit 1.32 aborts when a client goes while
# several answers are due.
start_stuck() {
	rm -f "$tmp/stuck.log"
	nbdsh_run "$1" >"$tmp/stuck.log" <<-'END' &
	cookies = [h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b"b" * 4096)), i * 8192)
	           for i in range(16)]
	cookies += [h.aio_zero(4096, (1 << 20) + i * 8192) for i in range(8)]
	cookies += [h.aio_trim(4096, (2 << 20) + i * 8192) for i in range(8)]
	print("asked", flush=True)
	def answered(cookie):
	    try:
	        return h.aio_command_completed(cookie)
	    except nbd.Error:
	        return True
	while cookies := [c for c in cookies if not answered(c)]:
	    h.poll(-1)
	END
	stuck=$!
	# A busy machine may hold a thread for another reason.
	wait_line "$tmp/stuck.log" asked
	wait_until "a thread to be held" held
}

# Another client, which was there before or comes now.
goes_on() {
	timeout "${2:-$((4 * TIMEOUT_S))}" nbdsh -u "$1" -c - <<-'END'
	h.pwrite(b"c" * 4096, 4096)
	h.zero(4096, 8192)
	h.flush()
	assert h.pread(4096, 4096) == b"c" * 4096
	END
}

# The client that was there before, and one that comes now.
disk_goes_on() {
	goes_on "${uris[$1]}" "$TIMEOUT_S" || return 1
	stop_process "${nbdkit_of[$1]}"
	start_nbdkit "server=127.0.0.1:$server_port" export="disk$1"
	uris[$1]=$uri nbdkit_of[$1]=$nbdkit_pid
	timeout "$TIMEOUT_S" nbdinfo "$uri" || fail "no new client is let in"
	goes_on "$uri" "$TIMEOUT_S"
}

# One file in 64 shares its lock in io_uring with the frozen one (doc/decisions.md D3), so others
# are tried.
one_goes_on() {
	for other in 1 2 3; do
		! disk_goes_on "$other" || return 0
		echo "elsewhere$other waits for the frozen file, which happens to one file in 64"
	done
	fail "three files on another file system wait for the frozen one"
}

# The frozen export waits for its storage, and the one that goes on does not.
waits=("$top_builddir/rtrsctl" --socket "$tmp/waits")
says_waiting() {
	local status=0
	"${waits[@]}" check >"$tmp/check" || status=$?
	[ $status -ge 1 ] && grep -E ': frozen waits [0-9]+ (s|min) for its storage' "$tmp/check" &&
		! grep -F "disk$other waits" "$tmp/check"
}

# The two of one name, and not that of the probe.
two_sessions() {
	[ "$("$top_builddir/rtrsctl" --socket="$tmp/ctl" list |
		grep -c -x "  session twice")" -eq 2 ]
}

for threads in 1 2; do
	for kind in copy never copy,direct; do
		invalidate=${kind%,direct} direct=${kind#"$invalidate"}
		start_server --threads $threads --control="$tmp/waits" \
			--invalidate "$invalidate" "frozen=$tmp/mnt/disk$direct" \
			"disk1=$tmp/elsewhere1" "disk2=$tmp/elsewhere2" "disk3=$tmp/elsewhere3"
		start_nbdkit "server=127.0.0.1:$server_port" export=frozen connections=2
		frozen=$nbdkit_pid frozen_uri=$uri
		write_one "$frozen_uri"
		uris=() nbdkit_of=()
		for other in 1 2 3; do
			start_nbdkit "server=127.0.0.1:$server_port" export=disk$other connections=2
			uris[other]=$uri nbdkit_of[other]=$nbdkit_pid
			write_one "$uri"
		done
		cleanup_fn thaw
		fsfreeze --freeze "$tmp/mnt"
		start_stuck "$frozen_uri"
		one_goes_on
		wait_until "a word of the wait" says_waiting
		thaw
		expect_exit $stuck 0
		write_one "$frozen_uri"
		"${waits[@]}" check >"$tmp/check" || true
		must_fail grep ' waits ' "$tmp/check"
		for other in 1 2 3; do
			goes_on "${uris[$other]}"
			stop_process "${nbdkit_of[$other]}"
		done
		stop_process "$frozen"
		stop_process "$server_pid"
	done
done

# A client that was killed leaves a session to the frozen file system; the next one may have its
# name, and that one is meant by it.
start_server --threads 2 --control="$tmp/ctl" "frozen=$tmp/mnt/disk" "disk1=$tmp/elsewhere1"
start_nbdkit "server=127.0.0.1:$server_port" export=frozen connections=2 sessname=twice control=none
write_one "$uri"
cleanup_fn thaw
fsfreeze --freeze "$tmp/mnt"
start_stuck "$uri"
kill_process "$nbdkit_pid"
wait "$stuck" || true			# its connection is gone
wait_line "$server_log" "twice: session closed"
start_nbdkit "server=127.0.0.1:$server_port" export=disk1 connections=2 sessname=twice mode=ro \
	control=none
wait_until "both sessions to be there" two_sessions
"$top_builddir/rtrsctl" --socket="$tmp/ctl" session disconnect twice
wait_line "$server_log" "path down: disconnected by rtrsctl"
timeout "$TIMEOUT_S" nbdinfo "$uri"
thaw
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# All exports on the one that stops: the server writes by itself, and is held in it.  It still
# talks.
start_server --threads 2 "frozen=$tmp/mnt/disk" "disk=$tmp/mnt/other"
start_nbdkit "server=127.0.0.1:$server_port" export=frozen connections=2 io-timeout=1
write_one "$uri"
cleanup_fn thaw
fsfreeze --freeze "$tmp/mnt"
start_stuck "$uri"
start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=ro io-timeout=1
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = $((8 << 20)) ]
kill -TERM "$server_pid"
wait_line "$server_log" "SIGTERM: stopping"
kill -TERM "$server_pid"
# A thread that the kernel holds goes when the file system goes on; the main thread does not wait.
wait_until "the server to exit" grep -q '^State:.Z' "/proc/$server_pid/status"
thaw
expect_exit "$server_pid" 143
stopped="$stopped$server_pid "
expect_exit $stuck 0
