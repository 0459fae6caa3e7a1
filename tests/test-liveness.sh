#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each connection of a path is known to be alive, not only the one with heartbeats: packets of the
# connections for requests are dropped, under a request and while nothing is sent, and only large
# packets are (a wrong MTU): the server's check names the path, too.  A path that loses requests
# again and again is not used while another one is up.  In network namespaces, by nftables.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
requires_server; requires_plugin
requires_plain_build
requires nbdsh --version
[ -n "$(command -v nft)" ] || skip "no nft (package nftables): dropped packets were not tried"

wires_up
in_client nft add table ip t || skip "no nftables in this kernel: dropped packets were not tried"
in_server nft add table ip t
in_client nft add chain ip t in '{ type filter hook input priority 0; }'
in_client nft add chain ip t out '{ type filter hook output priority 0; }'
in_server nft add chain ip t in '{ type filter hook input priority 0; }'
truncate -s 16M "$tmp/disk"
# With few chunks: the answer to INFO_REQ, which lists them, is a small packet.
serve --queue-depth 32 "disk=$tmp/disk"

# request_ports: the client's ports of connections for requests over cable 1: the first connection,
# with the least descriptor, has the heartbeats.
request_ports() {
	in_client ss -H -t -n -p state established "dst 10.77.1.2" |
		sed -n 's/.*10\.77\.1\.[0-9]*:\([0-9]*\) *10\.77\.1\.2.*fd=\([0-9]*\).*/\2 \1/p' |
		sort -n | sed -n '2,$s/.* //p' | paste -s -d ,
}
# drop_requests: nothing of these connections arrives, or leaves.
dropped=
drop_requests() {
	local ports
	ports=$(request_ports)
	[ -n "$ports" ] || fail "no connections for requests"
	in_client nft add rule ip t in tcp dport "{ $ports }" drop
	in_server nft add rule ip t in tcp sport "{ $ports }" drop
	dropped=$ports
}
# requests_lost_path: the path was lost by a connection for requests.  On a busy machine it may be
# lost by its heartbeats; the next one has other ports.
requests_lost_path() {
	local ports
	grep -E 'path .*lost: connection [12]: (Connection timed out|nothing was ack)' \
		"$nbdkit_log" && return
	ports=$(request_ports)
	[ -z "$ports" ] || [ "$ports" = "$dropped" ] || drop_requests
	return 1
}
requests_lost_path_of_read() {
	read_soon || fail "a read failed while packets of requests were dropped"
	requests_lost_path
}
one_path() {
	start_nbdkit server=10.77.1.2:1234 heartbeat=200 heartbeat-misses=4 connections=2 \
		export=disk control="$tmp/control" "$@"
	wait_until "the path" path_is_up 1
}
# Far below the half minute of a connection whose silence nobody limits.
read_soon() {
	timeout $((TIMEOUT_S / 2)) nbdsh -u "$uri" -c 'h.pread(4096, 0)'
}

# While nothing is sent.
one_path
read_soon
drop_requests
wait_until "the lost path" requests_lost_path
wait_line "$nbdkit_log" 'path .*connected again'
read_soon
stop_process "$nbdkit_pid"

# Under a request.
one_path
read_soon
drop_requests
wait_until "the lost path" requests_lost_path_of_read
stop_process "$nbdkit_pid"

# Large packets do not pass cable 1, to the server or from there: a path does not come up and says
# why, and a path that was up does not come up again.
why='no answer to a probe of 131072 bytes, do large packets pass .MTU.[?]'
hole() {
	case $1 in
	to) in_server nft add rule ip t in ip daddr 10.77.1.2 meta length '>' 1000 drop ;;
	from) in_client nft add rule ip t in ip saddr 10.77.1.2 meta length '>' 1000 drop ;;
	none) in_server nft flush chain ip t in; in_client nft flush chain ip t in ;;
	esac
}
# Three requests a round, so that a thread that takes two paths in turns has reads for each.
write_all() {
	timeout $((2 * TIMEOUT_S)) nbdsh -u "$uri" -c '
for i in range(64):
    h.pwrite(bytes([i]) * 65536, i * 65536)
    for again in range(2):
        assert h.pread(65536, i * 65536) == bytes([i]) * 65536
'
}
# requests_lose_path: all requests are answered, and path 1 is lost.  On a busy machine it takes
# more than one turn: a heartbeat that is late keeps requests from a path while another one is up.
requests_lose_path() {
	write_all || fail "requests failed while path 1 had a hole"
	grep 'path 10.77.1.1@10.77.1.2:1234.* lost: ' "$nbdkit_log"
}
# The server's check names the path, which may be up at the moment.
server_warns() {
	! "$top_builddir/rtrsctl" --server check >"$tmp/check" &&
		grep -E "RTRS WARNING - .*: rtrs-server disk: $1/10.77.1.1@10.77.1.2:1234 \
came up [0-9]+ times in .*, last lost .* ago: .*; what does rtrsctl check say at the client, and do large packets pass [(]MTU[)][?]" "$tmp/check"
}
for way in to from; do
	hole $way
	start_nbdkit server=10.77.2.2:1234 path=10.77.1.1@10.77.1.2:1234 heartbeat=200 \
		heartbeat-misses=4 connections=2 export=disk policy=round-robin sessname="$way"
	wait_until "the server's warning" server_warns "$way"
	wait_line "$nbdkit_log" "path 10.77.1.1@10.77.1.2:1234.* cannot connect: $why"
	write_all
	must_fail grep -E 'path 10.77.1.1@10.77.1.2:1234.*(lost|connected)' "$nbdkit_log"
	hole none
	wait_line "$nbdkit_log" 'path 10.77.1.1@10.77.1.2:1234.* connected'
	hole $way
	wait_until "the lost path" requests_lose_path
	stop_process "$nbdkit_pid"
	hole none
done

# Packets of requests do not pass cable 1, those of probes do: they have zeroes where requests have
# none.
start_nbdkit server=10.77.1.2:1234 path=10.77.2.1@10.77.2.2:1234 heartbeat=200 heartbeat-misses=4 \
	connections=2 export=disk policy=round-robin
wait_until "both paths" paths_up 2
in_server nft add rule ip t in ip daddr 10.77.1.2 meta length '>' 1000 @th,1600,32 != 0 drop
timeout $((2 * TIMEOUT_S)) nbdsh -u "$uri" -c '
import time
begin = time.monotonic()
n = 0
while n < 1000:
    h.pwrite(bytes([1 + n % 255]) * 65536, n % 64 * 65536)
    if b"not used for" in open("'"$nbdkit_log"'", "rb").read():
        break
    n += 1
for i in range(64):
    h.pwrite(bytes([i]) * 65536, i * 65536)
h.flush()
for i in range(64):
    assert h.pread(65536, i * 65536) == bytes([i]) * 65536
'
grep 'path 10.77.1.2:1234.* not used for 60 s while another path is up' "$nbdkit_log"
must_fail grep '10.77.2.2.* not used for' "$nbdkit_log"
# The other path goes, and small packets have to do.
in_server nft flush chain ip t in
pull 2
timeout $((2 * TIMEOUT_S)) nbdsh -u "$uri" -c 'assert h.pread(65536, 65536) == bytes([1]) * 65536'
stop_process "$nbdkit_pid"
plug 2

# A server that stands still for twice the time, with more under way than its sockets take: the path
# is lost, and comes back.
writer_start() {
	rm -f "$tmp/go" "$tmp/write.out"
	GO=$tmp/go nbdsh_run "$uri" <<-'END' >"$tmp/write.out" &
	import os, time
	print("ready", flush=True)
	while not os.path.exists(os.environ["GO"]):
	    time.sleep(0.02)
	buf = nbd.Buffer.from_bytearray(bytearray(b"w" * (1 << 20)))
	cookies = [h.aio_pwrite(buf, i << 20) for i in range(16)]
	print("sent", flush=True)
	while cookies := [c for c in cookies if not h.aio_command_completed(c)]:
	    h.poll(-1)
	h.flush()
	for i in range(16):
	    assert h.pread(1 << 20, i << 20) == b"w" * (1 << 20)
	END
	writer=$!
	wait_line "$tmp/write.out" ready
}
writer_write() {
	touch "$tmp/go"
	wait_line "$tmp/write.out" sent
}
one_path
read_soon
writer_start
stop_all_threads "$server_pid"
writer_write
wait_line "$nbdkit_log" 'path .*lost: '
pause 2
kill -CONT "$server_pid"
expect_exit "$writer" 0
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# With the defaults, on both ends, nothing arrives at all.
in_client nft flush ruleset
in_server nft flush ruleset
serve --queue-depth 32 "disk=$tmp/disk"
start_nbdkit server=10.77.1.2:1234 export=disk control="$tmp/control"
wait_until "the path" path_is_up 1
in_client ip link set cable1 down
wait_line "$nbdkit_log" 'path .*lost: .* for 2.25 s; reconnecting'
wait_line "$server_log" 'path down: heartbeat missed 2 times'
in_client ip link set cable1 up
wait_line "$nbdkit_log" 'path .*connected again'
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# A file system that stands still for twice the time is no dead peer.
[ "$(id -u)" -eq 0 ] || skip "needs root to freeze a file system; all else passed"
requires mke2fs -V
mkdir "$tmp/mnt"
truncate -s 64M "$tmp/image"
mke2fs -q -F -t ext4 "$tmp/image"
mount -o loop "$tmp/image" "$tmp/mnt" || skip "cannot mount ext4; all else passed"
cleanup_umount "$tmp/mnt"
fallocate -l 16M "$tmp/mnt/disk"
serve "disk=$tmp/mnt/disk"
one_path
read_soon
writer_start
fsfreeze --freeze "$tmp/mnt"
thaw() { fsfreeze --unfreeze "$tmp/mnt" 2>/dev/null || true; }
cleanup_fn thaw
writer_write
pause 2
must_fail grep 'lost: ' "$nbdkit_log"
thaw
expect_exit "$writer" 0
