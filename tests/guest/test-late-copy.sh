#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 nics=2 timeout=200 full
# guest: kernel=6.12 nics=2 timeout=200 full
# guest: kernel=6.1 nics=2 timeout=200 full
# The kernel's client has two paths.  A write is held in the storage, its path is given up, and the
# same write goes over the other path; then the block is written anew, and then the storage comes to
# the first copy.
#
# On our server the block must keep what was written last.  For the kernel's server this only
# reports what happens: it has nothing that keeps the order of the two copies.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
requires nbdkit eval --version

other4=10.2.0.$GUEST_ID
store=$tmp/store
mkdir "$store"
truncate -s 16M "$store/disk"
head -c 4096 /dev/zero | tr '\0' X >"$store/x"
head -c 4096 /dev/zero | tr '\0' Y >"$store/y"
export store
block=2048			# of 4 KiB

# The first write of the block that is asked for with $store/hold is held until $store/release.
# shellcheck disable=SC2016 # nbdkit's shell expands that
nbd_serve unix eval thread_model='echo parallel' get_size='echo 16777216' can_write='exit 0' \
	can_flush='exit 0' \
	flush='exit 0' \
	pread='dd if="$store/disk" iflag=skip_bytes,count_bytes skip="$4" count="$3" bs=64k status=none' \
	pwrite='to="of=$store/disk conv=notrunc oflag=seek_bytes seek=$4 bs=64k status=none"
		if [ "$4" -eq 8388608 ] && rmdir "$store/hold" 2>/dev/null; then
			cat >"$store/late"
			until [ -e "$store/release" ]; do sleep 0.1; done
			dd $to <"$store/late"
			touch "$store/carried-out"
		else
			dd $to
		fi'
nbd_attach -connections 1

# write_block FILE: in the background; sets writer.
write_block() {
	dd if="$1" of="$dev" bs=4k count=1 seek=$block oflag=direct status=none &
	writer=$!
}

# ends_soon PID: or it waits for something, and 10 s are not enough.
ends_soon() {
	(TIMEOUT_S=10 wait_until "the end of process $1" process_ended "$1")
}

path_of() {
	echo "$rtrs_sysfs/late/paths/"*"@ip:$1"
}

held_is_read() {
	[ -s "$store/late" ]
}

# late_copy EXPORT: sets order, and content: what the block has in the end.
late_copy() {
	rm -rf "$store/hold" "$store/late" "$store/release" "$store/carried-out"
	rnbd_map late "$1" "path=ip:$other4@ip:$other4"
	echo 1 >"$(path_of "$other4")/disconnect"
	mkdir "$store/hold"
	write_block "$store/x"
	wait_until "the write in the storage" held_is_read
	echo 1 >"$(path_of "$other4")/reconnect"
	echo 1 >"$(path_of "$ip4")/disconnect"
	if ends_soon $writer; then
		order="the second copy was answered while the first one was in the storage"
		wait $writer
		write_block "$store/y"
		ends_soon $writer || order="$order, the next write waited for it"
		touch "$store/release"
	else
		order="the second copy waited for the first one"
		touch "$store/release"
		wait $writer
		write_block "$store/y"
	fi
	wait $writer
	wait_until "the end of the first copy" test -e "$store/carried-out"
	content=$(dd if="$dev" bs=4k count=1 skip=$block iflag=direct status=none | head -c 1)
	rnbd_unmap "$dev"
}

modprobe rnbd-client
start_server --listen "rdma://$ip4:1234" --listen "rdma://$other4:1234" disk=/dev/nbd0,direct
late_copy disk
echo "rtrs-server: $order; the block has $content in the end"
[ "$content" = Y ] || fail "the first copy came over what was written later"
stop_server "$server_pid"

modprobe rtrs-server
modprobe rnbd-server dev_search_path=/dev
late_copy nbd0
echo "REPORT: the kernel's server ($(uname -r)): $order; the block has $content in the end, and Y was written last"
