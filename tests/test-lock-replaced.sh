#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file that is replaced while the server waits for its lock is not exported, under whichever of
# its names.
. ./tests/functions.sh
requires_server
requires flock --version

# A server that waits, for two names of one file; $1 is the name that is replaced.
replaced() {
	rm -f "$tmp/one" "$tmp/two"
	truncate -s 1M "$tmp/one"
	ln "$tmp/one" "$tmp/two"
	lock "$tmp/one"
	"$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 "a=$tmp/one,readonly" "b=$tmp/two" \
		>"$tmp/$1.log" 2>&1 &
	server=$!
	cleanup_fn kill_process $server
	wait_line "$tmp/$1.log" 'is locked by'
	truncate -s 1M "$tmp/new"
	mv "$tmp/new" "$tmp/$1"
	unlock
	expect_exit $server 1
	grep "export '[ab]': '$tmp/$1' was replaced or resized after it was opened" "$tmp/$1.log"
}

replaced one
replaced two
