#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Started without standard descriptors the server writes neither its log nor anything else into what it
# opens in their place: the exports.
. ./tests/functions.sh
requires_server

random_file "$tmp/before" 65536
for closed in '0' '1' '2' '0 1' '1 2' '0 1 2'; do
	cp "$tmp/before" "$tmp/disk"
	redirect=""
	for fd in $closed; do redirect="$redirect $fd>&-"; done
	mkfifo "$tmp/ready"
	# It has lines for both: where it listens, and that it ends.
	bash -c "exec $redirect"' "$@"' bash "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --ready-fd 9 \
		--log-level debug "disk=$tmp/disk" </dev/null >"$tmp/out" 2>&1 9>"$tmp/ready" &
	pid=$!
	read -r -t "$TIMEOUT_S" _ <"$tmp/ready" || fail "without $closed: does not start"
	stop_process "$pid"
	rm "$tmp/ready"
	cmp "$tmp/before" "$tmp/disk" || fail "without $closed: something was written to the export"
done
