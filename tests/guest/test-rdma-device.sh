#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 nics=2 timeout=200 full
# guest: kernel=6.12 nics=2 timeout=200 full
# guest: kernel=6.1 nics=2 timeout=200 full
# An RDMA device that is removed under load and comes back: the path fails once, both programs let
# go of the device (the kernel waits for that), the server listens again, the client comes back and
# no request fails; on an address of its own with keys that are windows of the device, and on all
# with copies.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"

truncate -s 48M "$tmp/disk"

# count REGEX FILE
count() {
	grep -c -E -- "$1" "$2" || true
}

lines_above() {
	[ "$(count "$1" "$2")" -gt "$3" ]
}

# It waits for everybody who has the device open, and cannot be killed meanwhile.
delete_rxe0() {
	rdma link delete rxe0 &
	wait_until "the end of rxe0" process_ended $!
	wait $!
}

# goes_and_comes_back ADDRESS-TO-LISTEN-ON SERVER-OPTION...
goes_and_comes_back() {
	local load turn down listens

	start_server --listen "rdma://$1:1234" "${@:2}" "disk=$tmp/disk"
	start_nbdkit "$ip4" transport=rdma export=disk connections=2 "io-timeout=$TIMEOUT_S"
	rm -f "$tmp/stop"
	load_until "$tmp/stop" "$uri" &
	load=$!
	for turn in 1 2 3; do
		load_goes_on "IO before removal $turn" "$tmp/stop"
		down=$(count 'path down: ' "$server_log")
		listens=$(count 'listening again' "$server_log")
		delete_rxe0
		# Which of the two hears of it first, the other may hear from.
		wait_until "the end of the path" lines_above \
			'path down: .*(the RDMA device was removed|peer disconnected)' \
			"$server_log" "$down"
		[ "$(count 'path down: ' "$server_log")" = $((down + 1)) ] ||
			fail "down more than once"
		rdma link add rxe0 type rxe netdev eth0
		if [ "$1" != 0.0.0.0 ]; then
			wait_until "the listener" lines_above 'listening again' "$server_log" \
				"$listens"
		fi
		load_goes_on "IO after removal $turn" "$tmp/stop"
		# A path that is lost again soon is not worth another line.
		[ "$(count 'lost: ' "$nbdkit_log")" -le "$turn" ] || fail "lost more than once"
	done
	touch "$tmp/stop"
	expect_exit $load 0
	grep -q 'connection [0-9]: the RDMA device was removed' "$nbdkit_log" "$server_log" ||
		fail "no word of it"
	stop_process "$nbdkit_pid"
	# Nothing goes over it now, but it has been used.
	delete_rxe0
	rdma link add rxe0 type rxe netdev eth0
	stop_server "$server_pid"
}
goes_and_comes_back "$ip4" --invalidate=always
grep -q "rdma://$ip4:1234: not listening any more: the RDMA device was removed; trying again" \
	"$server_log" ||
	fail "no word of the listener"
goes_and_comes_back 0.0.0.0 --invalidate=copy
