#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=1500 full
# Two machines, two cables, RDMA over both, and a load that verifies while cables are pulled, one
# and both, and the server's machine stands still: the plugin on our server, the kernel's client on
# our server, the plugin on the kernel's server.  The queue of an interface stands still, too.  No
# request fails, none has other data than was written.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/rack.sh"
requires_server; requires_plugin
requires fio --enghelp=nbd
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"

fio_options="--name=load --rw=randwrite --bsrange=4k-32k --size=2m --iodepth=32 --verify=crc32c --verify_state_save=0
	--verify_fatal=1 --verify_dump=0 --randrepeat=0 --eta=never"
fio_options=${fio_options//[$'\n\t']/ }

# load FIO-OPTION...: in guest B, in turns that are told, until /tmp/stop is there.
load() {
	# shellcheck disable=SC2016 # the guest's
	rack_spawn B bash -c 'cd /tmp && rm -f stop && for ((i = 1; ; i++)); do
		[ ! -e stop ] || exit 0
		fio '"$fio_options $*"' >fio.out || { cat fio.out; exit 1; }
		echo "turn $i"
	done'
	load=$rack_job
}

# goes_on: a turn that began after now has ended.
goes_on() {
	local turns

	turns=$(grep -c '^turn' "$load.out" || true)
	rack_line "$load" "^turn $((turns + 2))\$"
}

load_end() {
	rack_run B touch /tmp/stop
	rack_expect "$load" 0
}

# lines JOB REGEX N: until there are more than N.
lines() {
	rack_more() {
		[ "$(grep -c -E -- "$2" "$1.out")" -gt "$3" ]
	}
	rack_while B "line $(($3 + 1)) like '$2'" rack_more "$@"
}

count() {
	grep -c -E -- "$2" "$1.out" || true
}

# gateway EXPORT: two paths, in guest B, to whatever serves in A.
gateway() {
	rack_run B rm -f /tmp/nbd.sock /tmp/gateway.ctl
	rack_spawn B nbdkit -f -t 32 -U /tmp/nbd.sock \
		"$RTRS_PLUGIN" server=10.1.0.1 path=10.2.0.1 transport=rdma \
		export="$1" connections=2 heartbeat=1000 heartbeat-misses=2 control=/tmp/gateway.ctl
	gateway=$rack_job
	rack_run B bash -c 'until [ -S /tmp/nbd.sock ]; do sleep 0.1; done'
	# A slow machine may need a second attempt, and what was never up is not lost.
	# shellcheck disable=SC2016 # of the shell in B
	rack_run B bash -c 'until [ "$(./rtrsctl --socket /tmp/gateway.ctl --json show |
		grep -o "\"state\": *\"connected\"" | wc -l)" -eq 2 ]; do sleep 0.1; done'
	load --ioengine=nbd --uri='"nbd+unix:///?socket=/tmp/nbd.sock"'
}

gateway_end() {
	load_end
	rack_signal "$gateway" TERM
	rack_expect "$gateway" 0
}

# cable_pulled a|b ADDRESS: the gateway misses the path, and has it again.
cable_pulled() {
	local lost back

	lost=$(count "$gateway" "path .*$2:1234: lost") \
		back=$(count "$gateway" "path .*$2:1234: connected again")
	rack_link "$1" off
	lines "$gateway" "path .*$2:1234: lost" "$lost"
	goes_on
	rack_link "$1" on
	lines "$gateway" "path .*$2:1234: connected again" "$back"
	goes_on
}

both_pulled() {
	local lost1 lost2

	lost1=$(count "$gateway" "path .*10\.1\.0\.1:1234: lost")
	lost2=$(count "$gateway" "path .*10\.2\.0\.1:1234: lost")
	rack_link a off
	rack_link b off
	lines "$gateway" "path .*10\.1\.0\.1:1234: lost" "$lost1"
	lines "$gateway" "path .*10\.2\.0\.1:1234: lost" "$lost2"
	rack_link a on
	rack_link b on
	goes_on
}

# The queue of an interface stands nearly still, and rxe waits for its packets: nobody else does.
queue_stuck() {
	local lost back other

	lost=$(count "$gateway" "path .*10\.2\.0\.1:1234: lost")
	back=$(count "$gateway" "path .*10\.2\.0\.1:1234: connected again")
	other=$(count "$gateway" "path .*10\.1\.0\.1:1234: lost")
	# It is empty again before the kernel complains, which takes 50 s.
	rack_run B tc qdisc replace dev eth1 root tbf rate 40kbit burst 3k latency 1000s
	lines "$gateway" "path .*10\.2\.0\.1:1234: lost" "$lost"
	goes_on
	rack_run B tc qdisc del dev eth1 root
	lines "$gateway" "path .*10\.2\.0\.1:1234: connected again" "$back"
	goes_on
	[ "$(count "$gateway" "path .*10\.1\.0\.1:1234: lost")" -eq "$other" ] ||
		fail "the path over the other interface was lost, too"
}

faults_of_gateway() {
	goes_on
	cable_pulled a '10\.1\.0\.1'
	cable_pulled b '10\.2\.0\.1'
	both_pulled
}

rack_boot --smp 2
rack_run A truncate -s 64M /tmp/disk

echo "== the plugin on our server"
rack_spawn A ./rtrs-server --listen rdma://10.1.0.1:1234 \
	--listen rdma://10.2.0.1:1234 disk=/tmp/disk
server=$rack_job
rack_line "$server" 'listening.*10\.2\.0\.1'
gateway disk
faults_of_gateway
lost=$(count "$gateway" ': lost')
rack_freeze A
lines "$gateway" ': lost' $((lost + 1))
rack_thaw A
goes_on
queue_stuck
gateway_end

echo "== the kernel's client on our server"
paths=/sys/devices/virtual/rtrs-client/s/paths
# path_is NET STATE: of the kernel client's.
path_is() {
	rack_run B bash -c "until grep -q -x $2 $paths/*10.$1.0.1*/state; do sleep 0.1; done"
}
rack_run B modprobe rnbd-client
rack_run B bash -c 'echo "sessname=s path=ip:10.1.0.1 path=ip:10.2.0.1 device_path=disk" \
	>/sys/devices/virtual/rnbd-client/ctl/map_device'
path_is 1 connected
path_is 2 connected
load --ioengine=libaio --direct=1 --filename=/dev/rnbd0
for cable in a b; do
	goes_on
	[ $cable = a ] && net=1 || net=2
	rack_link $cable off
	path_is "$net" disconnected
	goes_on
	rack_link $cable on
	path_is "$net" connected
done
goes_on
load_end
rack_run B bash -c 'echo normal >/sys/block/rnbd0/rnbd/unmap_device'
rack_run B modprobe -r rnbd-client
rack_signal "$server" TERM
rack_expect "$server" 0

echo "== the plugin on the kernel's server"
rack_run A modprobe brd rd_nr=1 rd_size=65536
rack_run A modprobe rtrs-server
rack_run A modprobe rnbd-server dev_search_path=/dev
gateway ram0
faults_of_gateway
gateway_end
rack_run A modprobe -r rnbd-server
rack_run A modprobe -r rtrs-server
