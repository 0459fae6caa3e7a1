#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=600 full
# guest: kernel=7.3 timeout=600 full
# What a host does to devices of rtrs-attach, by both drivers: /run is full, the node of a disk is
# lost, neither server nor process answers rtrs-detach, and there are [20] devices, more than nbd.ko
# has when it is loaded.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
devices=${1:-20}
modprobe nbd nbds_max=4
modprobe -q ublk_drv || skip "this kernel has no ublk_drv"
# By default a host may have the memory of 14 sessions here.
exports+=(--queue-depth 16)
for ((i = 0; i < devices; i++)); do
	truncate -s 4M "$tmp/many$i"
	exports+=("many$i=$tmp/many$i")
done
begin_server

gone() {
	[ ! -e $state ] && [ ! -e $node ] && { [ ! -e "/sys/block/$disk" ] ||
		[ "$(cat "/sys/block/$disk/size")" -eq 0 ]; }
}

# written: a block that was written comes back, and is at the server.
written() {
	dd if=/dev/urandom of="$tmp/block" bs=4k count=1 status=none
	dd if="$tmp/block" of=$node bs=4k count=1 seek=7 oflag=direct status=none
	dd if=$node bs=4k count=1 skip=7 iflag=direct status=none | cmp - "$tmp/block"
	cmp -i $((7 << 12)):0 -n 4096 "$tmp/disk" "$tmp/block"
}

full_run() {
	echo "$via: /run is full"
	rm -rf /run/rtrs
	mkdir /run/rtrs
	mount -t tmpfs -o size=40k tmpfs /run/rtrs
	attach
	dd if=/dev/zero of=/run/rtrs/fill bs=4k status=none || true
	must_fail "$RTRS_ATTACH" --via=$via "127.0.0.1:$server_port/many0" 2>"$tmp/err"
	grep "No space left on device" "$tmp/err"
	written
	kill_attached
	attach
	written
	# In use, or the process would remove it.
	exec 5<$node
	kill "$(attached_pid)"
	wait_until "the end of the process" listed "waits for rtrs-attach"
	attach
	exec 5<&-
	written
	"$RTRS_DETACH" disk0
	wait_until "the end of the device" gone
	rm /run/rtrs/fill
	attach
	dd if=/dev/zero of=/run/rtrs/fill bs=4k status=none || true
	exec 5<$node
	"$RTRS_DETACH" --lazy disk0
	listed "goes when unused" || fail "it is not listed as leaving"
	exec 5<&-
	wait_until "the end of the device" gone
	umount /run/rtrs
}

lost_node() {
	echo "$via: the node of a disk in use is lost"
	attach
	mkfs.ext4 -q -F $node
	mount $node "$tmp/mnt"
	mv "/dev/$disk" /dev/lost
	must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
	grep "/dev/$disk: mounted at $tmp/mnt" "$tmp/err"
	umount "$tmp/mnt"
	exec 5</dev/lost
	must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
	grep "/dev/$disk" "$tmp/err"
	exec 5<&-
	mv /dev/lost "/dev/$disk"
	written
	"$RTRS_DETACH" disk0
	wait_until "the end of the device" gone
}

# says_waiting FILE: rtrs-detach says for what it waits.
says_waiting() {
	wait_until "a word of rtrs-detach" grep -q "waiting" "$1"
}

nobody_answers() {
	local detacher

	echo "$via: the server does not answer for a while"
	attach
	dd if=/dev/urandom of=$node bs=64k count=4 status=none
	stop_all_threads "$server_pid"
	"$RTRS_DETACH" disk0 2>"$tmp/err" &
	detacher=$!
	says_waiting "$tmp/err"
	kill -CONT "$server_pid"
	wait $detacher || fail "rtrs-detach has not waited: $(cat "$tmp/err")"
	wait_until "the end of the device" gone

	echo "$via: the server does not answer"
	attach
	dd if=/dev/urandom of="$tmp/block" bs=4k count=1 status=none
	dd if="$tmp/block" of=$node bs=4k seek=9 count=1 status=none
	stop_all_threads "$server_pid"
	must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
	grep "given up" "$tmp/err"
	kill -CONT "$server_pid"
	listed served || fail "it is not listed as served"
	"$RTRS_DETACH" disk0
	cmp -i $((9 << 12)):0 -n 4096 "$tmp/disk" "$tmp/block"
	wait_until "the end of the device" gone

	echo "$via: the process does not answer, and is killed by --force"
	attach
	stop_all_threads "$(attached_pid)"
	"$RTRS_DETACH" --force disk0 2>"$tmp/err"
	grep "is killed" "$tmp/err"
	wait_until "the end of the device" gone
}

many() {
	local i pids=()

	echo "$via: $devices devices"
	for ((i = 0; i < devices; i++)); do
		"$RTRS_ATTACH" --via=$via "127.0.0.1:$server_port/many$i" >>"$tmp/nodes" &
		pids[i]=$!
		[ $((i % 8)) -ne 7 ] || wait "${pids[i - 7]}"
	done
	for ((i = 0; i < devices; i++)); do
		wait "${pids[i]}" || fail "device $i is not attached"
	done
	[ "$("$RTRS_ATTACH" --list | grep -c ' served ')" -eq "$devices" ] ||
		fail "not all are served: $("$RTRS_ATTACH" --list)"
	for ((i = 0; i < devices; i++)); do
		printf 'device %d' $i | dd of="/dev/rtrs/many$i" bs=4k conv=sync oflag=direct status=none
	done
	for ((i = 0; i < devices; i++)); do
		[ "$(head -c 20 "$tmp/many$i" | tr -d '\0')" = "device $i" ] ||
			fail "device $i has written elsewhere"
		truncate -s 0 "$tmp/many$i"
		truncate -s 4M "$tmp/many$i"
	done
	"$RTRS_DETACH" --all
	wait_until "the end of the devices" no_devices
}

no_devices() {
	[ -z "$(ls -A /dev/rtrs /run/rtrs/attach | grep many)" ]
}

for via in nbd ublk; do
	full_run
	lost_node
	nobody_answers
	many
done
