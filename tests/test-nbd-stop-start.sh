#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A signal ends rtrs-nbd while it starts, before a server that says nothing: at once, with a line
# and the status of every such end, and without a socket left behind.
. ./tests/functions.sh
requires_gateway
requires /usr/bin/python3 --version

# Takes connections, and says nothing.
cat >"$tmp/silent.py" <<'END'
import os, socket, sys

tmp = sys.argv[1]
tcp = socket.create_server(("127.0.0.1", 0))
with open(tmp + "/port.new", "w") as f:
    f.write("%d\n" % tcp.getsockname()[1])
os.rename(tmp + "/port.new", tmp + "/port")
kept = []
while True:
    kept.append(tcp.accept()[0])
    with open(tmp + "/came", "a") as f:
        f.write("one\n")
END
/usr/bin/python3 "$tmp/silent.py" "$tmp" &
silent=$!
cleanup_fn kill_process "$silent"
has_port() { [ -s "$tmp/port" ]; }
wait_until "a silent server" has_port
came() { [ -s "$tmp/came" ]; }

for sig in TERM INT; do
	rm -f "$tmp/came"
	"$RTRS_NBD" -f -U "$tmp/sock" -P "$tmp/pid" transport=tcp export=disk control=none \
		server="127.0.0.1:$(cat "$tmp/port")" </dev/null >"$tmp/log" 2>&1 &
	pid=$!
	cleanup_fn kill_process "$pid"
	wait_until "a connection to the silent server" came
	kill -$sig "$pid"
	expect_exit "$pid" 0
	cat "$tmp/log"
	grep -q "SIG$sig: ends before it is ready" "$tmp/log"
	[ ! -e "$tmp/sock" ] || fail "its socket is still there"
	[ ! -e "$tmp/pid" ]
done

# The signal is taken when the server says something after all, and the thread that has taken it
# gets no CPU: rtrs-nbd ends all the same.  A preload of its own beside a sanitizer's is left out.
[ "$SANITIZERS" = no ] && [ -z "${VALGRIND_TESTS-}" ] || exit 0
requires_server
cp "$top_builddir/.libs/slow-sigwait.so" "$tmp"
start_server disk=mem:1M
stop_all_threads "$server_pid"
LD_PRELOAD=$tmp/slow-sigwait.so SIGWAIT_TAKEN=$tmp/taken "$RTRS_NBD" -f -U "$tmp/sock" \
	-P "$tmp/pid" transport=tcp export=disk control=none server="127.0.0.1:$server_port" \
	</dev/null >"$tmp/log" 2>&1 &
pid=$!
cleanup_fn kill_process "$pid"
# SIGTERM is blocked, for the thread that takes it.
wait_line "/proc/$pid/status" '^SigBlk:.*[4-7c-f][0-9a-f]{3}$'
kill -TERM "$pid"
taken() { [ -e "$tmp/taken" ]; }
wait_until "the signal to be taken" taken
kill -CONT "$server_pid"
expect_exit "$pid" 0
grep -q 'SIGTERM: ends before it is ready' "$tmp/log"
[ ! -e "$tmp/sock" ] || fail "its socket is still there"
[ ! -e "$tmp/pid" ]
