#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=900 full
# The rack itself: RDMA over both cables, seen from outside; a cable pulled and plugged while a
# kernel client has paths over both to our server; a guest that stands still and goes on; one that
# is lost and comes again.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/rack.sh"

command -v rping >/dev/null || skip "rping is not installed"

# ping NET: RDMA from B to A.  rping waits for ever for what is lost while it connects, so one that
# has not come to its end is tried anew, with a server that takes one client after the other.
ping_over() {
	local server

	rack_spawn A rping -s -P -a "10.$1.0.1"
	server=$rack_job
	rack_run B bash -c "until timeout -s KILL 20 rping -c -a 10.$1.0.1 -C 5; do sleep 0.2; done"
	rack_signal "$server" KILL
	rack_expect "$server" 137
}

paths=/sys/devices/virtual/rtrs-client/s/paths
# path_is NET STATE: of the kernel client's.
path_is() {
	rack_run B bash -c "until grep -q -x $2 $paths/*10.$1.0.1*/state; do sleep 0.1; done"
}

# count A|B: a job there that counts; sets counter.
count() {
	# shellcheck disable=SC2016 # the guest's
	rack_spawn "$1" bash -c 'while :; do echo $((++i)); read -r -t 0.1 <> <(:) || true; done'
	counter=$rack_job
}

# counts JOB N: it has come N further.
counts() {
	local from

	rack_line "$1" '^1$'
	from=$(wc -l <"$1.out")
	rack_line "$1" "^$((from + $2))\$"
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
rack_spawn A ./rtrs-server --listen rdma://10.1.0.1:1234 \
	--listen rdma://10.2.0.1:1234 disk=/tmp/disk
server=$rack_job
rack_line "$server" 'listening.*10\.2\.0\.1'
rack_run B modprobe rnbd-client
rack_run B bash -c 'echo "sessname=s path=ip:10.1.0.1 path=ip:10.2.0.1 device_path=disk" \
	>/sys/devices/virtual/rnbd-client/ctl/map_device'
path_is 1 connected
path_is 2 connected
rack_link b off
path_is 2 disconnected
# All of it goes over the other.
rack_run B dd if=/dev/zero of=/dev/rnbd0 bs=64k count=64 oflag=direct
path_is 1 connected
rack_link b on
path_is 2 connected
rack_run B bash -c 'echo normal >/sys/block/rnbd0/rnbd/unmap_device'
rack_signal "$server" TERM
rack_expect "$server" 0

# One stands still while the other counts on.
count A; on_a=$counter
count B; on_b=$counter
counts "$on_a" 3
rack_freeze A
# What A had begun to write when it was stopped is there by then.
counts "$on_b" 5
before=$(cat "$on_a.out")
counts "$on_b" 30
[ "$(cat "$on_a.out")" = "$before" ] || fail "guest A goes on while it is frozen"
rack_thaw A
counts "$on_a" 10
rack_signal "$on_a" KILL
rack_signal "$on_b" KILL
ping_over 1

rack_kill B
rack_start B
rack_booted B
rack_up B
ping_over 1
ping_over 2
