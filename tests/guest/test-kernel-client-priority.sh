#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=120 full
# guest: kernel=6.12 timeout=120 full
# The priority of an export is an upper limit for the kernel's client, too, which sends best-effort:4 with
# each request for which nobody has chosen a priority.  A trace point of the block layer has what reaches the
# device.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
requires ionice -V

modprobe -a rnbd-client null_blk
trace=/sys/kernel/tracing
mount -t tracefs tracefs $trace 2>/dev/null || true
[ -d $trace/events/block ] || skip "the kernel has no trace points of the block layer"

# prio DEVICE SECTOR COMMAND...: the priority of the command's read of that sector, at the device MAJOR,MINOR.
prio() {
	local device=$1 sector=$2

	: >$trace/trace
	"${@:3}" dd if="$dev" of=/dev/null bs=4k count=1 skip=$((sector / 8)) iflag=direct status=none
	sed -n "s/.*block_rq_issue: $device .* $sector + 8 \([a-z]*\),[0-9]*,\([0-9]\) .*/\1,\2/p" $trace/trace
}

# sent SECTOR: the priority that the client gives a read whose process has chosen none.
sent() {
	local device

	device=$(cat "/sys/block/${dev#/dev/}/dev")
	prio "${device/:/,}" "$1" env
}

# expect_prio WANTED SECTOR COMMAND...
expect_prio() {
	local seen

	seen=$(prio "$null" "${@:2}")
	[ "$seen" = "$1" ] || { cat $trace/trace; fail "sector $2 with '${*:3}': '$seen' instead of '$1'"; }
}

# set_prio PRIORITY: of the export.
set_prio() {
	timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control" export set disk "priority=$1"
}

null=$(cat /sys/block/nullb0/dev)
null=${null/:/,}
start_server --control "$tmp/control" --listen "rdma://$ip4:1234" disk=/dev/nullb0,direct
rnbd_map s1 disk
echo 1 >$trace/events/block/block_rq_issue/enable
cleanup_fn sh -c "echo 0 >$trace/events/block/block_rq_issue/enable"
[ "$(sent 800)" = be,4 ] || fail "the client sends '$(sent 808)'"
set_prio idle
expect_prio idle,0 1600 env
expect_prio idle,0 2400 ionice -c 2 -n 2
set_prio best-effort:5
expect_prio be,5 3200 env
expect_prio be,5 4000 ionice -c 2 -n 2
expect_prio be,5 4800 ionice -c 1 -n 0
expect_prio be,7 5600 ionice -c 2 -n 7
expect_prio idle,0 6400 ionice -c 3
set_prio none
expect_prio be,2 7200 ionice -c 2 -n 2
