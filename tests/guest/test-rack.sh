#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=240
# The rack itself: RDMA over both cables, seen from outside; a cable pulled and plugged while a kernel
# client has paths over both to our server; a guest that stands still; one that is lost and comes again.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/rack.sh"

command -v rping >/dev/null || skip "rping is not installed"
[ -x ./fab-conformance-verbs ] || skip "built without rdma-core"

# ping NET: from B to A.
ping_over() {
	local server

	rack_spawn A timeout 20 rping -s -a "10.$1.0.1" -C 5
	server=$rack_job
	rack_run B timeout 20 bash -c "until rping -c -a 10.$1.0.1 -C 5; do sleep 0.2; done"
	rack_expect "$server" 0
}

paths=/sys/devices/virtual/rtrs-client/s/paths
# path_is NET STATE: of the kernel client's.
path_is() {
	rack_run B timeout 100 bash -c "until grep -q -x $2 $paths/*10.$1.0.1*/state; do sleep 0.1; done"
}

rack_boot --smp 2
rack_capture B a "$tmp/a.pcap"
ping_over 1
ping_over 2
rack_capture_end B a
# Packets of RoCE go to UDP port 4791, at that place behind Ethernet and IPv4.
[ "$(python3 -c '
import struct, sys
data, at, count = open(sys.argv[1], "rb").read(), 24, 0
while at < len(data):
    size = struct.unpack_from("<I", data, at + 8)[0]
    packet = data[at + 16:at + 16 + size]
    count += packet[12:14] == b"\x08\x00" and packet[36:38] == b"\x12\xb7"
    at += 16 + size
print(count)' "$tmp/a.pcap")" -ge 20 ] || fail "no RoCE in the capture"

rack_run A truncate -s 64M /tmp/disk
rack_spawn A ./rtrs-server --listen rdma://10.1.0.1:1234 --listen rdma://10.2.0.1:1234 disk=/tmp/disk
server=$rack_job
wait_line "$server.out" 'listening.*10\.2\.0\.1'
rack_run B modprobe rnbd-client
rack_run B timeout 60 bash -c 'echo "sessname=s path=ip:10.1.0.1 path=ip:10.2.0.1 device_path=disk" \
	>/sys/devices/virtual/rnbd-client/ctl/map_device'
path_is 1 connected
path_is 2 connected
rack_link b off
path_is 2 disconnected
# All of it goes over the other.
rack_run B timeout 60 dd if=/dev/zero of=/dev/rnbd0 bs=64k count=64 oflag=direct
path_is 1 connected
rack_link b on
path_is 2 connected
rack_run B bash -c 'echo normal >/sys/block/rnbd0/rnbd/unmap_device'
rack_signal "$server" TERM
rack_expect "$server" 0

rack_freeze A
rack_run B bash -c '! timeout -s KILL 5 rping -c -a 10.1.0.1 -C 1'
rack_thaw A
ping_over 1

rack_kill B
rack_start B
rack_booted B
rack_up B
ping_over 1
ping_over 2
