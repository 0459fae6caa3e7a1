#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Too few descriptors to start, from hardly one to nearly enough: each time one line says why, and
# the status is 1, whatever part of the start it was, on whatever thread.  And too few later: who
# comes meanwhile waits, and is served when there are some, whether or not others come.  Too little
# memory and too few threads are named, too.
. ./tests/functions.sh
requires_server
requires_plain_build
requires prlimit --version
requires /usr/bin/python3 -c 'import resource'

truncate -s 1M "$tmp/disk"
failed=0
settled() { grep -q 'info: ready, ' "$tmp/out" || process_ended "$pid"; }
for n in $(seq 6 60); do
	(ulimit -n "$n" && exec "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 --threads 4 \
		--control "$tmp/control" --metrics "unix:$tmp/metrics" --seccomp on \
		"disk=$tmp/disk") >"$tmp/out" 2>&1 &
	pid=$!
	cleanup_fn kill_process "$pid"
	wait_until "a start with $n descriptors" settled
	cat "$tmp/out"
	! grep 'info: ready, ' "$tmp/out" || break
	expect_exit "$pid" 1
	[ "$(grep -c 'error: ' "$tmp/out")" = 1 ] || fail "with $n descriptors: not one error line"
	grep -q "error: .*: Too many open files (RLIMIT_NOFILE is $n: raise it, " "$tmp/out" ||
		fail "with $n descriptors: the line does not name the limit"
	! grep 'no locks' "$tmp/out" || fail "with $n descriptors: a reason that is none"
	failed=$((failed + 1))
done
[ "$failed" -gt 5 ] || fail "only $failed starts failed: the limits do not reach"
kill_process "$pid"

# What it may have without asking it takes.
SERVER_PREFIX="prlimit --nofile=64:512" start_server "disk=$tmp/disk"
grep -q -E '^Max open files +512 +512' "/proc/$server_pid/limits"

# That is before the exports are opened.
exports=()
for i in $(seq 80); do
	truncate -s 4096 "$tmp/export$i"
	exports+=("export$i=$tmp/export$i")
done
SERVER_PREFIX="prlimit --nofile=64:1024" start_server --threads 2 "${exports[@]}"
stop_server "$server_pid"

start_server --control "$tmp/control" --metrics "unix:$tmp/metrics" "last=$tmp/export1"
timeout "$TIMEOUT_S" /usr/bin/python3 - "$server_pid" "$server_log" "$tmp" <<'END'
import os, resource, socket, sys, time
pid, log, tmp = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def limit(n):
    most = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (n, most))

def warnings():
    return open(log).read().count("cannot accept a client now: ")

for name, says in (("control", b'{"command":"show"}\n'),
                   ("metrics", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")):
    taken = {int(n) for n in os.listdir("/proc/%d/fd" % pid)}
    before = warnings()
    limit(min(set(range(max(taken) + 2)) - taken))
    s = socket.socket(socket.AF_UNIX)
    s.connect("%s/%s" % (tmp, name))
    s.sendall(says)
    while warnings() == before:
        time.sleep(0.05)
    limit(512)
    assert s.recv(1), "no answer of " + name
END
stop_server "$server_pid"

# Nor memory for a path: the cause once.
start_server --listen "unix:$tmp/sock" mem=mem:1M
size=$(awk '/^VmSize/ { print $2 * 1024 }' "/proc/$server_pid/status")
prlimit --pid "$server_pid" --as=$((size + 1000000))
expect_failure 1 "refused: Cannot allocate memory" "$top_builddir/rtrs-bench" --number-ios=1 \
	"unix:$tmp/sock" mem
wait_line "$server_log" 'connection refused: cannot make a path: Cannot allocate memory$'
stop_server "$server_pid"

# Nor threads, at the start: the limit is of users that are not root.
if [ "$(id -u)" = 0 ] && setpriv --reuid=61234 --clear-groups true; then
	chmod 711 "$tmp"
	cp "$RTRS_SERVER" "$tmp/rtrs-server"
	as_user=(setpriv --reuid=61234 --clear-groups)
	server=("$tmp/rtrs-server" --listen tcp://127.0.0.1:0 --control none --threads 2 mem=mem:1M)
	"${as_user[@]}" "${server[@]}" >"$tmp/out" 2>&1 &
	pid=$!
	cleanup_fn kill_process "$pid"
	wait_until "a start as another user" settled
	cat "$tmp/out"
	# io_uring may be for root alone.
	if grep -q 'info: ready, ' "$tmp/out"; then
		stop_process "$pid"
		must_fail "${as_user[@]}" prlimit --nproc=5 "${server[@]}" >"$tmp/out" 2>&1
		cat "$tmp/out"
		grep 'error: cannot .*: no more threads: .*RLIMIT_NPROC is 5: raise it, by ulimit' \
			"$tmp/out"
		# Each program, at its first thread and at a later one.
		cp "$top_builddir"/rtrs-{nbd,attach,bench} "$tmp"
		mkdir -m 777 "$tmp/any"
		while read -r limit command; do
			read -r -a words <<<"$command"
			must_fail "${as_user[@]}" prlimit --nproc="$limit" "$tmp/${words[0]}" \
				"${words[@]:1}" >"$tmp/out" 2>&1
			cat "$tmp/out"
			grep "RLIMIT_NPROC is $limit: raise it, by ulimit" "$tmp/out"
		done <<-END
			1 rtrs-nbd -f -U $tmp/any/sock 127.0.0.1:9 export=mem
			3 rtrs-nbd -f -U $tmp/any/sock 127.0.0.1:9 export=mem
			1 rtrs-attach -f 127.0.0.1:9/mem
			1 rtrs-bench 127.0.0.1:9 mem
			3 rtrs-bench 127.0.0.1:9 mem
			1 rtrs-server --listen unix:$tmp/any/rtrs --control none mem=mem:1M
		END
	else
		echo "left out: a limit of threads: another user starts no server here"
	fi
fi
