#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 smp=4 clock=instructions timeout=400 full
# guest: kernel=6.12 smp=4 timeout=400 full
# guest: kernel=6.1 smp=4 timeout=280 full
# The kernel's rnbd-client when things end: mapped and unmapped 100 times, paths that are
# disconnected and reconnected, under load too, a server that stops, is killed and comes back.  What
# the client waits for ends by itself; the guest's checks see to it that nothing of it stays in the
# kernel.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
requires fio --version

truncate -s 64M "$tmp/disk"
random_file "$tmp/data" $((1 << 20))
modprobe rnbd-client

# One kernel with keys that end, the other with copies.
case $(uname -r) in 6.12*) invalidate=always ;; *) invalidate=copy ;; esac
serve() {
	start_server --listen "rdma://$ip4:1234" --invalidate=$invalidate disk="$tmp/disk"
}

# Write, then read and compare.
fio_verify() {
	fio --name=verify --filename="$dev" --direct=1 --ioengine=libaio --iodepth=8 \
		--rw=randwrite --bs=4k \
		--offset=16m --size=2m --verify=crc32c \
		--verify_state_save=0 --verify_fatal=1 --output="$tmp/fio.out" ||
		{ cat "$tmp/fio.out"; fail fio; }
}

write_data() {
	dd if="$tmp/data" of="$dev" bs=64k oflag=direct status=none
}

same_data() {
	dd if="$dev" bs=64k count=16 iflag=direct status=none | cmp - "$tmp/data"
}

reconnected() {
	rnbd_connected "$1" || echo 1 >"$(rnbd_path "$1")/reconnect"
	rnbd_connected "$1"
}

# Writes that $dev has completed.
writes() {
	awk '{ print $5 }' "/sys/block/${dev#/dev/}/stat"
}

more_writes() {
	[ "$(writes)" -gt "$1" ]
}

serve
echo "== map and unmap, 100 times"
{ set +x; } 2>/dev/null
for ((i = 1; i <= 100; i++)); do
	rnbd_map again disk >/dev/null || fail "map $i of 100"
	rnbd_unmap "$dev" || fail "unmap $i of 100"
done
echo "100 of 100"
[ "$(grep -c "path up, 5 connections, session again" "$server_log")" -gt 0 ]
set -x

echo "== reconnect by the client"
rnbd_map s1 disk
write_data
for i in 1 2 3; do
	echo 1 >"$(rnbd_path s1)/reconnect"
	rnbd_connected s1
	wait_until "the device" rnbd_state "$dev" open
	same_data
done
echo "== disconnect and reconnect by the client"
echo 1 >"$(rnbd_path s1)/disconnect"
wait_until "the loss of the device" rnbd_state "$dev" closed
must_fail dd if="$dev" of=/dev/null bs=4k count=1 iflag=direct status=none
[ "$(tenths reconnected s1)" -lt 30 ] || fail "came back after more than 3 s"
wait_until "the device" rnbd_state "$dev" open
same_data

echo "== reconnect under load"
fio --name=load --filename="$dev" --direct=1 --ioengine=libaio --iodepth=8 --rw=randrw --bs=4k \
	--offset=8m --size=8m --time_based --runtime=60 --continue_on_error=all \
	--output="$tmp/load.out" &
load=$!
cleanup_fn kill_process $load
for i in 1 2 3; do
	wait_until "IO" more_writes $(($(writes) + 20))
	echo 1 >"$(rnbd_path s1)/reconnect"
	rnbd_connected s1
done
wait_until "the device" rnbd_state "$dev" open
kill -TERM $load
wait $load || true
fio_verify

echo "== the server ends with a mapped client"
kill -TERM "$server_pid"
expect_exit "$server_pid" 0
stopped="$stopped$server_pid "
wait_until "the loss of the device" rnbd_state "$dev" closed
must_fail dd if="$dev" of=/dev/null bs=4k count=1 iflag=direct status=none
serve
wait_until "the path" reconnected s1
wait_until "the device" rnbd_state "$dev" open
same_data

echo "== the server is killed under load, and the client comes back by itself"
fio --name=load --filename="$dev" --direct=1 --ioengine=libaio --iodepth=8 --rw=randrw --bs=4k \
	--offset=8m --size=8m --time_based --runtime=5 --continue_on_error=all \
	--output="$tmp/load.out" &
load=$!
cleanup_fn kill_process $load
kill_process "$server_pid"
wait_until "the loss of the device" rnbd_state "$dev" closed
wait $load || true
serve
TIMEOUT_S=80 wait_until "the device" rnbd_state "$dev" open
same_data
fio_verify
echo "== unmap while the server is gone"
kill_process "$server_pid"
wait_until "the loss of the device" rnbd_state "$dev" closed
[ "$(tenths rnbd_unmap "$dev" force)" -lt 100 ] || fail "a forced unmap took 10 s"
serve
rnbd_map s1 disk
same_data
rnbd_unmap "$dev"
