#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=200
# guest: kernel=6.1 timeout=200
# The kernel's NBD client on the gateway: discard and zeroes, several connections, a device taken away while
# it is written to.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
requires fio --version
command -v nbd-client >/dev/null || skip "nbd-client is not installed"

random_file "$tmp/disk" $((64 << 20))
start_server disk="$tmp/disk"
export_of() {
	nbd_gateway "$1" 127.0.0.1:"$server_port" export=disk
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
wait_until "fewer blocks" [ "$(stat -c %b "$tmp/disk")" -le $((before - (16 << 11))) ]
cmp -i $((16 << 20)) -n $((16 << 20)) "$tmp/disk" /dev/zero
blkdiscard -z -o $((40 << 20)) -l $((1 << 20)) /dev/nbd0
cmp -i $((40 << 20)) -n $((1 << 20)) "$tmp/disk" /dev/zero
echo 3 >/proc/sys/vm/drop_caches
same_on_server

echo "four connections"
fio --name=v --filename=/dev/nbd0 --direct=1 --ioengine=libaio --rw=randwrite --bsrange=512-64k \
	--blockalign=512 --iodepth=16 --size=8M --verify=crc32c --verify_backlog=256 --output="$tmp/fio.out"
nbd_detach

echo "taken away while it is written to"
nbd_attach
fio --name=busy --filename=/dev/nbd0 --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=16 \
	--size=64M --time_based --runtime=60 --output="$tmp/busy.out" &
busy=$!
wrote() {
	[ "$(awk '{ print $7 }' /sys/block/nbd0/stat)" -gt "$1" ]
}
wait_until "writes" wrote "$(($(awk '{ print $7 }' /sys/block/nbd0/stat) + 1000))"
nbd-client -d /dev/nbd0
must_fail wait "$busy"
wait_until "the end of /dev/nbd0" nbd_detached

# Debian's nbdkit aborts now and then when a client leaves so; see test-multi-conn.sh.
! process_ended "$nbdkit_pid" || grep "raw_send_socket: Assertion" "$nbdkit_log"
kill_process "$nbdkit_pid"

echo "and it comes again"
export_of unix
nbd_attach
same_on_server
nbd_detach
