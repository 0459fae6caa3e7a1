#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sessions with two paths: whom they are let in by, when they begin, which way requests go, and when
# a path is given up.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
requires_server; requires_plugin
requires nbdsh --version
requires fio --enghelp=nbd

wires_up
size=$((16 << 20))
truncate -s $size "$tmp/disk" "$tmp/other"

# pattern BYTE: written all over the first half and read back.
pattern() {
	nbdsh_run "$uri" <<END
data = bytes([$1]) * (1 << 20)
for i in range(8):
    h.pwrite(data, i << 20)
h.flush()
for i in range(8):
    assert h.pread(len(data), i << 20) == data
END
}

echo "== a path that is cut when nbdkit starts comes later"
serve "disk=$tmp/disk"
pull 2
start_nbdkit server=10.77.1.2:1234 path=10.77.2.2:1234 heartbeat=200 heartbeat-misses=2 \
	connections=2 export=disk
pattern 1
! path_is_up 2 || fail "it is up"
plug 2
wait_until "the other path" paths_up 2
stop_process "$nbdkit_pid"

echo "== and so when that is the first"
pull 1
start_nbdkit server=10.77.1.2:1234 path=10.77.2.2:1234 heartbeat=200 heartbeat-misses=2 \
	connections=2 export=disk
pattern 2
plug 1
wait_until "the first path" paths_up 2
stop_process "$nbdkit_pid"
stop_process "$server_pid"

echo "== two servers are not one"
SERVER_PREFIX=$SERVER_NET start_server --listen tcp://10.77.1.2:1234 "disk=$tmp/disk"
first=$server_pid
SERVER_PREFIX=$SERVER_NET start_server --listen tcp://10.77.2.2:1234 "disk=$tmp/other"
second=$server_pid
pull 2
start_nbdkit server=10.77.1.2:1234 path=10.77.2.2:1234 heartbeat=200 heartbeat-misses=2 \
	connections=2 export=disk
pattern 3
plug 2
wait_line "$nbdkit_log" \
	'path .*10\.77\.2\.2:1234: .*: not the server .*lead to, as 10\.77\.1\.2:1234: one of'
# Neither when it is the only one that is left: it has another file, and requests wait for theirs.
mkfifo "$tmp/wrote" "$tmp/killed"
export tmp
nbdsh_run "$uri" <<'END' &
import os
h.pwrite(b"4" * 4096, 0)
open(os.environ["tmp"] + "/wrote", "w").close()
open(os.environ["tmp"] + "/killed").close()
h.pwrite(b"5" * 4096, 4096)
h.flush()
assert h.pread(8192, 0) == b"4" * 4096 + b"5" * 4096
END
client=$!
timeout "$TIMEOUT_S" cat "$tmp/wrote"
kill_process "$first"
timeout "$TIMEOUT_S" sh -c ": >'$tmp/killed'"
wait_line "$nbdkit_log" \
	'path .*10\.77\.2\.2:1234: cannot connect: not the server that had the exports'
SERVER_PREFIX=$SERVER_NET start_server --listen tcp://10.77.1.2:1234 "disk=$tmp/disk"
expect_exit $client 0
grep -q 'disk: export came back as another file' "$nbdkit_log" || fail "no word of it"
cmp "$tmp/other" <(head -c $size /dev/zero) || fail "something was written to the other server"
stop_process "$nbdkit_pid"
stop_process "$server_pid"
stop_process "$second"

echo "== connect-timeout=forever starts without a server"
start_nbdkit server=10.77.1.2:1234 path=10.77.2.2:1234 connections=2 export=disk \
	connect-timeout=forever
pattern 6 &
client=$!
wait_line "$nbdkit_log" 'starting without'
serve "disk=$tmp/disk"
expect_exit $client 0
stop_process "$nbdkit_pid"

echo "== connect-timeout=SECONDS waits for it"
pull 1
pull 2
(
	wait_line "$tmp/nbdkit$((started + 1)).log" 'failing -> draining'
	plug 1
	plug 2
) &
start_nbdkit -v -- server=10.77.1.2:1234 path=10.77.2.2:1234 connections=2 export=disk \
	transport=tcp \
	"connect-timeout=$((4 * TIMEOUT_S))"
pattern 7
stop_process "$nbdkit_pid"
stop_process "$server_pid"
# And not for ever.
expect_nbdkit_failure 'server=127\.0\.0\.1:1: .*refused' server=127.0.0.1:1 connect-timeout=1

for attempts in 0 2; do
	echo "== paths that do not come back are given up after $attempts attempts"
	serve "disk=$tmp/disk"
	connect export=disk max-reconnect-attempts=$attempts
	kill_process "$server_pid"
	for n in 1 2; do
		wait_line "$nbdkit_log" \
			"path .*10\.77\.$n\.2:1234: given up after $attempts attempts to reconnect"
	done
	[ $attempts -gt 0 ] || must_fail grep 'cannot connect' "$nbdkit_log"
	stop_process "$nbdkit_pid"
done

# Of what fio moves, in percent.
share() {
	local before1 before2

	before1=$(bytes 1) before2=$(bytes 2)
	(cd "$tmp" &&
		fio --name=policy --ioengine=nbd --uri="$uri" --rw=randwrite --bs=4k --size=8M \
			--iodepth=32 \
		--verify=crc32c --verify_state_save=0 --verify_fatal=1 --verify_dump=0 \
		--randrepeat=0 --eta=never)
	before1=$(($(bytes 1) - before1)) before2=$(($(bytes 2) - before2))
	share=$((100 * before1 / (before1 + before2)))
}

serve "disk=$tmp/disk"
for policy in round-robin min-inflight min-latency; do
	echo "== policy=$policy"
	connect export=disk policy=$policy
	share
	echo "cable 1: $share %"
	# Requests of one size, in turns; those that are not in flight elsewhere; wherever it is
	# faster just now.
	case $policy in
	round-robin) [ $share -ge 40 ] && [ $share -le 60 ] ;;
	min-inflight) [ $share -ge 1 ] && [ $share -le 99 ] ;;
	esac || fail "cable 1 has $share %"
	# One that is left has all.
	pull 1
	share
	[ $share -le 5 ] || fail "$share % into a cable that is cut"
	plug 1
	wait_until "both paths" paths_up 2
	stop_process "$nbdkit_pid"
done
