#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a server closes the connection when it gets NBD_CMD_DISC.  nbdkit 1.32.5 does.  nbdkit 1.42.3 does with one
# thread for each connection; with several, after a request, it mostly keeps the connection open until the client
# closes: who waits for the end of the stream before closing waits for ever.
. "$(dirname "$0")/common.sh"

# open_after SUITE THREADS: how many of ten connections stay open for 5 s behind a READ and a DISC
open_after() {
	local socket=$tmp/$1/nbdkit.sock pid i n=0
	rm -f "$socket"
	chroot "$tmp/$1" nbdkit -f --threads "$2" --unix /nbdkit.sock memory 1M &
	pid=$!
	until [ -S "$socket" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	for ((i = 0; i < 10; i++)); do
		[ "$(/usr/bin/python3 -B "$here/nbdkit-disc.py" "$socket")" = closed ] || n=$((n + 1))
	done
	kill $pid
	wait $pid
	printf '%s' "$n"
}

packages bookworm nbdkit=1.32.5-1
packages trixie nbdkit=1.42.3-1
expect "nbdkit 1.32.5, one thread, open" "$(open_after bookworm 1)" 0
expect "nbdkit 1.32.5, 16 threads, open" "$(open_after bookworm 16)" 0
expect "nbdkit 1.42.3, one thread, open" "$(open_after trixie 1)" 0
n=$(open_after trixie 16)
expect "nbdkit 1.42.3, 16 threads, open: $n of 10, so some" "$([ "$n" -gt 0 ] && echo yes)" yes
