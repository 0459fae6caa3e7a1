#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=240 full
# guest: kernel=7.3 timeout=240 full
# rtrs-attach and rtrs-detach where somebody does not answer: the server, the process of the device,
# or a rtrs-detach that was killed.  Nothing hangs, and the list is true.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
modprobe -q ublk_drv || true
truncate -s 8M "$tmp/other"
modprobe brd rd_nr=1 rd_size=65536
mkfs.ext4 -q /dev/ram0
mkdir "$tmp/storage"
mount /dev/ram0 "$tmp/storage"
cleanup_umount "$tmp/storage"
truncate -s 8M "$tmp/storage/slow"
exports+=(other="$tmp/other" slow="$tmp/storage/slow")
begin_server

nothing_left() {
	[ ! -e $state ] && [ ! -e $node ] && [ ! -e "/sys/block/$disk/backend" ] &&
		{ [ ! -e /sys/class/ublk-char ] || [ -z "$(ls /sys/class/ublk-char)" ]; }
}

echo "a server that is not there: the device is listed, and ends with the command"
"$RTRS_ATTACH" tcp://127.0.0.1:1/disk disk0 connect-timeout=forever 2>"$tmp/err" &
attacher=$!
wait_until "the process that waits" daemon_waits
early=$(attached_pid)
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep "disk0: it is not attached yet: process $early waits for the server" "$tmp/err"
kill $attacher
wait_until "the end of the process that waits" process_ended "$early"
expect_exit $attacher 143
"$RTRS_DETACH" --all
[ -z "$("$RTRS_ATTACH" --list)" ] || fail "a device that never was is listed"

# try VIA
try() {
	local detacher pid

	via=$1
	echo "$via: the process is frozen: rtrs-detach says what it waits for, and can be stopped"
	attach
	pid=$(attached_pid)
	stop_all_threads "$pid"
	"$RTRS_DETACH" disk0 2>"$tmp/err" &
	detacher=$!
	wait_line "$tmp/err" "disk0: the device is not flushed yet, after 5 s: waiting; .* --force"
	kill $detacher
	expect_exit $detacher 143
	kill -CONT "$pid"
	dd if=$node of=/dev/null bs=4k count=1 iflag=direct
	listed served || fail "it is not served any more"

	echo "$via: by force: the frozen process is killed"
	dd if=$node of=/dev/null bs=4k count=1 iflag=direct
	stop_all_threads "$pid"
	dd if=$node of=/dev/null bs=4k count=1 iflag=direct &
	reader=$!
	"$RTRS_DETACH" --force disk0 2>"$tmp/err" || { cat "$tmp/err"; fail "it is not forced"; }
	grep "disk0: its process $pid does not end, and is killed" "$tmp/err"
	must_fail wait $reader
	wait_until "the end of the device" nothing_left

	echo "$via: a rtrs-detach that was killed when it had written its wish"
	attach
	pid=$(attached_pid)
	sed -i 's/^wish=0/wish=1/' $state
	kill -USR1 "$pid"
	wait_until "the end of the process" process_ended "$pid"
	listed "waits for rtrs-attach" || fail "the device is not listed"
	"$RTRS_DETACH" disk0
	wait_until "the end of the device" nothing_left

	echo "$via: a server that is away at SIGTERM: nothing removes the device later"
	attach
	pid=$(attached_pid)
	kill_process "$server_pid"
	kill "$pid"
	wait_until "the program that flushes" pgrep -f 'rtrs-attach-detach disk0'
	kill -KILL "$pid"
	wait_until "the end of the process" process_ended "$pid"
	restart_server
	attach
	dd if=$node of=/dev/null bs=4k count=1 iflag=direct
	wait_until "the end of the program that flushed" no_helper
	listed served || fail "it was detached"
	"$RTRS_DETACH" disk0
	wait_until "the end of the device" nothing_left

	echo "$via: no place for the link"
	rmdir /dev/rtrs
	touch /dev/rtrs
	must_fail "$RTRS_ATTACH" --via="$via" "127.0.0.1:$server_port/disk" disk0 2>"$tmp/err"
	grep "/dev/rtrs/disk0: Not a directory" "$tmp/err"
	must_fail grep "cannot be read" "$tmp/err"
	rm /dev/rtrs
	wait_until "the end of the device" nothing_left
}

# A larger export while a request waits for its storage: Linux 6.12 resizes when that has ended.
grows() {
	local pid

	"$RTRS_ATTACH" --via=nbd "127.0.0.1:$server_port/slow" slow
	disk=$(sed -n 's/^disk=//p' /run/rtrs/attach/slow)
	pid=$(sed -n 's/^pid=//p' /run/rtrs/attach/slow)
	# It shall not look in between.
	stop_all_threads "$pid"
	truncate -s 16M "$tmp/storage/slow"
	fsfreeze --freeze "$tmp/storage"
	dd if=/dev/zero of=/dev/rtrs/slow bs=4k count=1 oflag=direct &
	writer=$!
	wait_until "a request that waits" in_flight
	kill -CONT "$pid"
	wait_until "the program that resizes" pgrep -f 'rtrs-attach-resize slow'
	"$RTRS_DETACH" --force slow
	must_fail wait $writer
	fsfreeze --unfreeze "$tmp/storage"
	"$RTRS_ATTACH" --via=nbd "127.0.0.1:$server_port/slow" slow
	[ "$(blockdev --getsize64 /dev/rtrs/slow)" -eq $((16 << 20)) ] || fail "another size"
	"$RTRS_DETACH" slow
}

# Without its state: the process writes it again; without a process the kernel knows the name.
lost_state() {
	via=$1
	attach
	rm -r /run/rtrs/attach
	wait_until "the state that is written again" listed served
	kill_attached
	rm -r /run/rtrs/attach
	must_fail "$RTRS_ATTACH" --via="$via" "127.0.0.1:$server_port/other" disk0 2>"$tmp/err"
	grep "disk0 is /dev/$disk, and waits .*, of another export than 'other'" "$tmp/err"
	listed "waits for rtrs-attach"
	"$RTRS_DETACH" disk0
	wait_until "the end of the device" nothing_left
}

no_helper() {
	! pgrep -f 'rtrs-attach-detach disk0'
}

if [ -e /dev/ublk-control ]; then
	try ublk
fi
try nbd
if ! kernel_preempts; then
	echo "an export grows while a request waits"
	grows
fi
echo "the state is lost"
if [ -e /dev/ublk-control ]; then
	lost_state ublk
fi
lost_state nbd
