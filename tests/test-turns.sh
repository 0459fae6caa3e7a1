#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nobody starves beside a greedy neighbour, a client that never ends and reads as deep as it can.
#   - Of one session: the greedy client reads an export with a limit at the server, and a client of
#     another export is answered while the greedy one's requests wait.  Both gateways.  Judged by
#     how many requests of the greedy one have ended: of those that were in front of the others'
#     first read most must still wait.
#   - Of two sessions at one thread of the server: a client that asks now and then.  Judged by the
#     server's count of the requests that entered the storage in front of a request.
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
start_server --threads 1 --config "$tmp/server.conf" --control "$tmp/server.ctl"
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
	"$top_builddir/rtrsctl" --socket "$1" --json show | with_json "
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

# ---- two sessions at one thread of the server ----

# ahead: the most requests of others that entered the storage in front of one of "other", from its
# arrival on.
ahead() {
	"$top_builddir/rtrsctl" --socket "$tmp/server.ctl" --json show | with_json "print(*(d['ahead_max'] for s in a['sessions'] for d in s['devices'] if d['export'] == 'other'))"
}

goes_on() {
	[ "$(cat "$tmp/deep.ended")" -gt "$1" ]
}

# Each request arrives while the server stands still and has 90 or more of the greedy client, for a
# time in which no path is lost.
sessions() {
	local asks=20 client reader deep before
	mkfifo "$tmp/asks" "$tmp/answers"
	start_gateway "server=unix:$tmp/server.sock" "control=$tmp/deep.ctl" heartbeat=60000
	deep="nbd+unix:///slow?socket=$sock"
	start_gateway "server=unix:$tmp/server.sock" "control=$tmp/small.ctl" heartbeat=60000
	greedy "$deep" "$tmp/deep.ended" &
	client=$!
	cleanup_fn let_go deep
	nbdsh -u "nbd+unix:///other?socket=$sock" -c 'import sys' \
		-c 'for line in sys.stdin: h.pread(4096, 0); print("done", flush=True)' \
		<"$tmp/asks" >"$tmp/answers" &
	reader=$!
	exec 7>"$tmp/asks" 8<"$tmp/answers"
	echo >&7		# it has the export open
	read -r -t "$TIMEOUT_S" -u 8
	wait_until "the greedy client" test -s "$tmp/deep.ended"
	for _ in $(seq $asks); do
		before=$(cat "$tmp/deep.ended")
		stop_all_threads "$server_pid"
		wait_until "requests of the greedy client" all_wait "$tmp/deep.ctl" 90
		echo >&7
		wait_until "a request of the other one" all_wait "$tmp/small.ctl" 1
		kill -CONT "$server_pid"
		read -r -t "$TIMEOUT_S" -u 8
		wait_until "the greedy client goes on" goes_on "$before"
	done
	[ "$(ahead)" -le 16 ] || fail "$(ahead) requests of the neighbour were in front"
	exec 7>&- 8<&-
	expect_exit $reader 0
	let_go deep
	expect_exit $client 0
}

sessions
front gateway 90 start_gateway
front plugin 90 start_nbdkit --threads=256
