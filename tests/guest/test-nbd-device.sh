#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=200 full
# guest: kernel=6.1 timeout=200 full
# The kernel's NBD client on the gateway: discard and zeroes, several connections, a device that is
# taken away while it is written to and comes again at once.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
requires fio --version
requires ss --version
command -v nbd-client >/dev/null || skip "nbd-client is not installed"

[ -x ./fab-conformance-verbs ] || skip "built without rdma-core"

random_file "$tmp/disk" $((64 << 20))
start_server --listen tcp://127.0.0.1:0 --listen "rdma://$ip4:1234" disk="$tmp/disk"
export_of() {
	nbd_gateway "$1" 127.0.0.1:"$server_port" export=disk
}
blocks_at_most() {
	[ "$(stat -c %b "$tmp/disk")" -le "$1" ]
}
same_on_server() {
	cmp -n $((64 << 20)) /dev/nbd0 "$tmp/disk"
}

echo "discard gives the blocks back, zeroes are zeroes, and their neighbours stay"
export_of unix
nbd_attach -connections 4
[ "$(blockdev --getsize64 /dev/nbd0)" -eq $((64 << 20)) ]
before=$(stat -c %b "$tmp/disk")
blkdiscard -o $((16 << 20)) -l $((16 << 20)) /dev/nbd0
wait_until "fewer blocks" blocks_at_most $((before - (16 << 11)))
cmp -i $((16 << 20)) -n $((16 << 20)) "$tmp/disk" /dev/zero
blkdiscard -z -o $((40 << 20)) -l $((1 << 20)) /dev/nbd0
cmp -i $((40 << 20)) -n $((1 << 20)) "$tmp/disk" /dev/zero
echo 3 >/proc/sys/vm/drop_caches
same_on_server

echo "four connections"
fio --name=v --filename=/dev/nbd0 --direct=1 --ioengine=libaio --rw=randwrite --bsrange=512-64k \
	--blockalign=512 --iodepth=16 --size=8M --verify=crc32c \
	--verify_state_save=0 --verify_backlog=256 --output="$tmp/fio.out"
nbd_detach
stop_process "$nbdkit_pid"

# Debian's nbdkit aborts now and then when a client leaves with requests in flight, whatever its
# plugin.
aborted() {
	process_ended "$nbdkit_pid" && grep "raw_send_socket: Assertion" "$nbdkit_log"
}

descriptors() {
	find "/proc/$1/fd" -type l | wc -l
}

descriptors_at_most() {
	[ "$(descriptors "$1")" -le "$2" ]
}

# No client is connected to the unix socket.
nobody_connected() {
	[ -z "$(ss -Hx state established src "$tmp/nbd.sock")" ]
}

# nbdkit_done N: it works on nothing and holds no more descriptors than that, or it has ended.
nbdkit_done() {
	nbdkit_idle "$nbdkit_pid" && { process_ended "$nbdkit_pid" ||
		descriptors_at_most "$nbdkit_pid" "$1"; }
}

wrote() {
	[ "$(awk '{ print $7 }' /sys/block/nbd0/stat)" -gt "$1" ]
}

read_some() {
	dd if=/dev/nbd0 of=/dev/null bs=4k count=1 iflag=direct status=none
}

since() {
	echo $(((${EPOCHREALTIME/./} - $1) / 100000))
}

# taken_away COMMAND...: it starts a front end, whose device is taken away while it is written to,
# and comes again three times.  Sets aborts, and in tenths first: how long it took to come, and
# fastest: to come again, the shortest of the three.
taken_away() {
	local turn busy held begin took

	aborts=0 fastest=
	begin=${EPOCHREALTIME/./}
	"$@"
	nbd_attach
	read_some
	first=$(since "$begin")
	nbd_detach
	# Not before: nbdkit says that it is ready, and makes the session then.
	wait_until "the front end to be done with the first" nbdkit_idle "$nbdkit_pid"
	wait_until "the end of the first connection" nobody_connected
	held=$(descriptors "$nbdkit_pid")
	for turn in 1 2 3; do
		nbd_attach
		fio --name=busy --filename=/dev/nbd0 --direct=1 --ioengine=libaio --rw=randwrite \
			--bs=4k \
			--iodepth=16 --size=64M --time_based --runtime=60 --output="$tmp/busy.out" &
		busy=$!
		wait_until "writes" wrote "$(($(awk '{ print $7 }' /sys/block/nbd0/stat) + 1000))"
		nbd-client -d /dev/nbd0
		begin=${EPOCHREALTIME/./}
		wait_until "the end of /dev/nbd0" nbd_detached
		wait_until "the front end to be done with turn $turn" nbdkit_done "$held"
		if process_ended "$nbdkit_pid"; then
			aborted || fail "nbdkit has ended"
			aborts=$((aborts + 1))
			kill_process "$nbdkit_pid"
			"$@"
		fi
		nbd_attach
		read_some
		took=$(since "$begin")
		[ "$took" -ge "${fastest:-$((took + 1))}" ] || fastest=$took
		must_fail wait "$busy"
		nbd_detach
	done
	wait_until "the front end to be done" nbdkit_done "$held"
	stop_process "$nbdkit_pid"
}

echo "taken away while it is written to, from nbdkit's own plugin and from ours"
truncate -s 64M "$tmp/plain"
held_by_server=$(descriptors "$server_pid")
taken_away nbd_serve unix file "$tmp/plain"
echo "nbdkit file: $aborts aborts, there in $first tenths, again in $fastest"
taken_away nbd_gateway unix "$ip4:1234" transport=rdma export=disk
echo "ours, $NBD_FRONT: $aborts aborts, there in $first tenths, again in $fastest"
# A server that holds the device for seconds does it each time, a busy host now and then.
[ "$fastest" -le $((2 * first + 10)) ] || fail "it comes again after $fastest tenths"
wait_until "the server to hold what it held before" descriptors_at_most "$server_pid" \
	"$held_by_server"

echo "and nothing is amiss"
export_of tcp
nbd_attach
same_on_server
nbd_detach
