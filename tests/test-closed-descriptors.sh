#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Started without standard descriptors no program writes what it prints into what it opens in their
# place: exports, and connections.  An answer that cannot be written is a failure.
. ./tests/functions.sh
requires_server

random_file "$tmp/before" 65536
for closed in '0' '1' '2' '0 1' '1 2' '0 1 2'; do
	cp "$tmp/before" "$tmp/disk"
	redirect=""
	for fd in $closed; do redirect="$redirect $fd>&-"; done
	mkfifo "$tmp/ready"
	# It has lines for both: where it listens, and that it ends.
	bash -c "exec $redirect"' "$@"' bash "$RTRS_SERVER" --listen tcp://127.0.0.1:0 \
		--ready-fd 9 \
		--log-level debug "disk=$tmp/disk" </dev/null >"$tmp/out" 2>&1 9>"$tmp/ready" &
	pid=$!
	read -r -t "$TIMEOUT_S" _ <"$tmp/ready" || fail "without $closed: does not start"
	stop_process "$pid"
	rm "$tmp/ready"
	cmp "$tmp/before" "$tmp/disk" || fail "without $closed: something was written to the export"

	# rtrsctl sends its question, and nothing else.
	timeout "$TIMEOUT_S" /usr/bin/python3 - "$tmp/control" "$top_builddir/rtrsctl" \
		"$redirect" <<'END'
import os, socket, subprocess, sys
path, rtrsctl, redirect = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(path)
    listener.listen()
    child = subprocess.Popen(["bash", "-c", "exec " + redirect + ' "$@"', "bash", rtrsctl, "--socket", path, "list"])
    conn, _ = listener.accept()
    sent = b""
    while not sent.endswith(b"\n"):
        sent += conn.recv(4096)
    conn.sendall(b'{"ok":true,"program":"this test"}\n')
    while more := conn.recv(4096):
        sent += more
    assert sent.rstrip(b"\n") == b'{"command":"list"}', sent
    assert child.wait() == 0, child.returncode
os.unlink(path)
END
done

start_server "disk=$tmp/disk"
for redirect in '>&-' '<&- >&-' '<&- >&- 2>&-'; do
	timeout "$TIMEOUT_S" bash -c "exec \"\$@\" $redirect" bash "$top_builddir/rtrs-bench" \
		--number-ios=10 \
		"127.0.0.1:$server_port" disk || fail "rtrs-bench with $redirect: status $?"
done
# A build with sanitizers has no filter, and says so.
must_fail grep -E 'warning|error' <(grep -v 'system calls are not filtered: ' "$server_log")

# ---- a full disk ----
[ -w /dev/full ] || skip "all passed but what needs /dev/full"
# lost REGEX COMMAND...
lost() {
	local regex=$1 status=0
	shift
	timeout "$TIMEOUT_S" "$@" >/dev/full 2>"$tmp/lost" || status=$?
	[ $status -eq 1 ] || fail "status $status: $*"
	grep -E -x "$regex" "$tmp/lost"
	[ "$(wc -l <"$tmp/lost")" -eq 1 ] || fail "not one line: $*"
}
for command in list show stats '--json list' status '--watch list' '--watch status' \
	--dump --help --version; do
	# shellcheck disable=SC2086 # words
	lost 'rtrsctl: standard output: No space left on device' "$top_builddir/rtrsctl" $command
done
for option in '' --json; do
	# shellcheck disable=SC2086 # words
	lost 'rtrs-bench: the report cannot be written: No space left on device' \
		"$top_builddir/rtrs-bench" \
		--number-ios=1 $option "127.0.0.1:$server_port" disk
done
