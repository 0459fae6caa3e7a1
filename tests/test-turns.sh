#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nobody waits behind a greedy neighbour: a client that never ends reads an export with a limit at
# the server, as deep as it can, and a client of another export of the same session is answered
# while the greedy one's requests wait.  Both gateways.  Judged by how many requests of the greedy
# one have ended: of those that were in front of the others' first read most must still wait.
. ./tests/functions.sh
requires_server; requires_gateway
requires nbdsh --version

truncate -s 8M "$tmp/slow" "$tmp/other"
cat >"$tmp/server.conf" <<-END
	[server]
	listen = unix:$tmp/server.sock
	allow = uid:$(id -u)
	[export "slow"]
	path = $tmp/slow
	[export "other"]
	path = $tmp/other
END
start_server --config "$tmp/server.conf" --control "$tmp/server.ctl"
limit() {
	"$top_builddir/rtrsctl" --socket "$tmp/server.ctl" export set slow "iops=$1"
}
# let_go NAME: a gateway that ends waits for requests in flight.
let_go() {
	touch "$tmp/$1.ended.stop"
	limit none
}

# greedy URI FILE: 256 reads in flight until FILE.stop is there; FILE has how many have ended.  Its
# replies are all read: nbdkit 1.32 aborts if a client goes while threads send.
greedy() {
	nbdsh -u "$1" -c - <<-END
	import os
	ended = idle = 0
	bufs = [nbd.Buffer(4096) for i in range(256)]
	def done(err):
	    global ended, idle
	    ended += 1
	    idle += 1
	    return 1
	def tell():
	    with open("$2.new", "w") as f:
	        f.write("%d\n" % ended)
	    os.rename("$2.new", "$2")
	for buf in bufs:
	    h.aio_pread(buf, 0, completion=done)
	tell()
	while idle < len(bufs):
	    h.poll(-1)
	    tell()
	    while idle and not os.path.exists("$2.stop"):
	        idle -= 1
	        h.aio_pread(bufs[0], 0, completion=done)
	h.shutdown()
	END
}

# all_wait CONTROL LEAST: so many requests of the session are with the server.
all_wait() {
	"$top_builddir/rtrsctl" --socket "$1" --json show | /usr/bin/python3 -c "
import json, sys
a = json.load(sys.stdin)
n = sum(p['inflight'] for s in a['sessions'] for p in s['paths'])
print(n, 'in flight', file=sys.stderr)
sys.exit(n < $2)"
}

# front NAME LEAST COMMAND...: a gateway for both exports; LEAST of its permits the greedy one gets.
front() {
	local name=$1 least=$2 before after client
	shift 2
	limit 1
	"$@" "server=unix:$tmp/server.sock" "control=$tmp/$name.ctl"
	greedy "nbd+unix:///slow?socket=$sock" "$tmp/$name.ended" &
	client=$!
	cleanup_fn let_go "$name"
	wait_until "the greedy client" test -s "$tmp/$name.ended"
	wait_until "its requests" all_wait "$tmp/$name.ctl" "$least"
	before=$(cat "$tmp/$name.ended")
	nbdsh_run "nbd+unix:///other?socket=$sock" <<-END
	for i in range(50):
	    h.pread(4096, 4096 * i)
	    h.pwrite(bytearray(4096), 4096 * i)
	h.flush()
	END
	after=$(cat "$tmp/$name.ended")
	all_wait "$tmp/$name.ctl" $((least / 2)) || fail "$name: the greedy client has ended"
	[ $((after - before)) -lt $((least / 2)) ] ||
		fail "$name: $((after - before)) requests of the neighbour were in front"
	let_go "$name"
	expect_exit $client 0
}

front gateway 90 start_gateway
front plugin 90 start_nbdkit --threads=256
