#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 mem=1G timeout=400 full
# Memory is full of what is still to be written to a block device of rtrs-attach: the process that
# writes it waits for none, and neither does the one that takes its place.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_attach
requires_server

# Outside of this guest's memory.
image=/run/guest/pressure.img
node=/dev/rtrs/disk0
free_mb=160 data_mb=64
PF_MEMALLOC_NOIO=0x80000

truncate -s 256M $image
cleanup_fn rm -f $image
start_server disk=$image
# The memory of a server on another machine is its own.
echo -1000 >"/proc/$server_pid/oom_score_adj"
mkdir "$tmp/mnt" "$tmp/hog"
mount -t tmpfs -o size=100% hog "$tmp/hog"
cleanup_fn umount "$tmp/hog"
cleanup_fn end

end() {
	rm -f "$tmp/hog/"*
	! mountpoint -q "$tmp/mnt" || umount "$tmp/mnt"
	"$RTRS_DETACH" --all || "$RTRS_DETACH" --all --force
}

available_mb() {
	awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo
}

fill_memory() {
	local n

	echo 3 >/proc/sys/vm/drop_caches
	n=$(($(available_mb) - free_mb))
	head -c "${n}M" /dev/zero >"$tmp/hog/fill"
	echo "$(available_mb) MiB are available"
}

dirty() {
	[ "$(awk '$1 == "Dirty:" { print int($2 / 1024) }' /proc/meminfo)" -ge 8 ]
}

# As its unit: others are killed first when memory is too little.
attach() (
	echo -1000 >/proc/self/oom_score_adj
	exec "$RTRS_ATTACH" --via="$1" "127.0.0.1:$server_port/disk" disk0
)

pid() {
	sed -n 's/^pid=//p' /run/rtrs/attach/disk0
}

# Its threads do not wait for other IO when they need memory, and its memory stays.
check_process() {
	local stat

	for stat in "/proc/$(pid)/task/"*/stat; do
		[ $(($(sed 's/.*) //' "$stat" | cut -d ' ' -f 7) & PF_MEMALLOC_NOIO)) -ne 0 ] ||
			fail "$(cat "$stat"): may wait for memory"
	done
	[ "$(awk '$1 == "VmLck:" { print $2 }' "/proc/$(pid)/status")" -gt 0 ] ||
		fail "none of its memory is locked"
}

# Much of memory may be dirty; the next process begins in what is left.
echo 60 >/proc/sys/vm/dirty_ratio
echo 50 >/proc/sys/vm/dirty_background_ratio
for via in ublk nbd; do
	echo "by $via"
	attach $via
	check_process
	mkfs.ext4 -q -F $node
	mount $node "$tmp/mnt"
	fill_memory
	for i in 1 2; do
		head -c "${data_mb}M" /dev/urandom | tee "$tmp/mnt/data$i" |
			sha256sum >"$tmp/sum$i" &
		writers[i]=$!
	done
	wait_until "dirty memory" dirty
	echo "the process is killed, and another one takes over, with as little memory"
	old=$(pid)
	kill -KILL "$old"
	wait_until "the end of process $old" process_ended "$old"
	attach $via
	check_process
	wait "${writers[@]}"
	sync
	rm "$tmp/hog/fill"
	umount "$tmp/mnt"
	echo 3 >/proc/sys/vm/drop_caches
	mount $node "$tmp/mnt"
	for i in 1 2; do
		sha256sum <"$tmp/mnt/data$i" | cmp - "$tmp/sum$i"
	done
	umount "$tmp/mnt"
	"$RTRS_DETACH" disk0
done
! dmesg | grep -i "out of memory" || fail "memory was too little"
