#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=240
# guest: kernel=6.1 timeout=600 full
# guest: kernel=7.3 timeout=600 full
# An export as a device by rtrs-attach and nbd.ko: made, used while its process and the server are
# killed, grown, and removed in each way.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
via=nbd
truncate -s 8M "$tmp/other"
exports+=(other="$tmp/other")
begin_server

detached() {
	[ ! -e $state ] && [ ! -e $node ] && [ "$(cat /sys/block/nbd0/size)" -eq 0 ]
}

# Each file is on the disk before its sum is told; until end_loads.
write_files() {
	local n=0 at=$tmp/mnt/file

	while [ ! -e "$tmp/stop.files" ]; do
		n=$((n + 1))
		head -c $((n % 20 * 4001 + 1)) /dev/urandom >"$at$n"
		sync "$at$n"
		sha256sum "$at$n" >>"$tmp/sums"
		[ $n -le 200 ] || rm "$at$((n - 200))"
	done
}

more_files() {
	[ "$(wc -l <"$tmp/sums")" -ge $((files + 3)) ]
}

wait_for_files() {
	files=$(wc -l <"$tmp/sums")
	wait_until "more files" more_files
}

# What did not become a device is not in the way of the next one.
must_fail "$RTRS_ATTACH" --via=nbd "127.0.0.1:$server_port/none-such" disk0
attach
listed served || fail "it is not listed as served"
"$RTRS_ATTACH" --list --json | python3 -c "
import json, sys
one, = json.load(sys.stdin)
assert (one['node'], one['disk'], one['size'], one['state']) == (
    '$node', 'nbd0', 64 << 20, 'served'), one"
fio --name=verify --filename=$node --rw=randwrite --bs=4k --size=8M --iodepth=16 \
	--ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 >"$tmp/fio.log" ||
	{ cat "$tmp/fio.log"; fail "fio found other data"; }

# A file system over the death of the process, a restart of it, and the death of the server.
mkfs.ext4 -q -F $node
mount $node "$tmp/mnt"
: >"$tmp/sums"
write_files &
loads[files]=$!
wait_for_files
kill_attached
listed "waits for rtrs-attach" || fail "it is not listed as waiting"
attach
wait_for_files
kill "$(attached_pid)"
wait_until "the end of the process" listed "waits for rtrs-attach"
attach
wait_for_files
kill_process "$server_pid"
restart_server
wait_for_files
# Both at once: the device waits until there is a server again, and the process that waits for the
# server can be killed, too.
kill_attached
kill_process "$server_pid"
attach_waits
kill_attached
must_fail wait $attacher
attach_waits
restart_server
wait $attacher || fail "no process has taken the device over"
wait_for_files
end_loads

# In use: refused, with the user's name; and later, when the last user has gone.
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep -q "/dev/nbd0: mounted at $tmp/mnt" "$tmp/err" ||
	fail "the user is not named: $(cat "$tmp/err")"
echo "in use, and its node is lost"
mv /dev/nbd0 /dev/lost
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep "/dev/nbd0: mounted at $tmp/mnt" "$tmp/err"
mv /dev/lost /dev/nbd0
"$RTRS_DETACH" --lazy disk0
listed "goes when unused" || fail "it is not listed as leaving"
umount "$tmp/mnt"
wait_until "the end of the device" detached
fsck.ext4 -f -n "$tmp/disk"

# All is on the disk.
attach
fsck.ext4 -f -n $node
mount -o ro $node "$tmp/mnt"
tail -n 200 "$tmp/sums" | sha256sum --quiet -c
umount "$tmp/mnt"
exec 5<$node
must_fail "$RTRS_DETACH" disk0 2>"$tmp/err"
grep -q "process $$ (.*) has it open" "$tmp/err" ||
	fail "the process is not named: $(cat "$tmp/err")"
exec 5<&-
"$RTRS_DETACH" disk0
detached || fail "it is still there"

# The export grows.
attach
truncate -s 96M "$tmp/disk"
wait_until "the new size" size_is $((96 << 20))
dd if=/dev/urandom of=$node bs=1M seek=80 count=16 oflag=direct status=none
cmp -n $((96 << 20)) $node "$tmp/disk"

# Read-only.
"$RTRS_DETACH" disk0
"$RTRS_ATTACH" --via=nbd "127.0.0.1:$server_port/disk" disk0 mode=ro
[ "$(blockdev --getro $node)" -eq 1 ] || fail "it may be written to"
must_fail dd if=/dev/zero of=$node bs=4k count=1 oflag=direct
"$RTRS_DETACH" disk0
attach

# By force, and without a process.
mount $node "$tmp/mnt"
"$RTRS_DETACH" --force disk0
[ ! -e $node ] && [ ! -e $state ] || fail "it is still there"
must_fail dd if=/dev/nbd0 of=/dev/null bs=4k count=1 iflag=direct
umount "$tmp/mnt"
wait_until "the end of the device" detached
attach
kill_attached
"$RTRS_DETACH" disk0
detached || fail "it is still there"

# By another program: the process ends, and a unit would start it again.
"$RTRS_ATTACH" --via=nbd --foreground "127.0.0.1:$server_port/disk" disk0 >"$tmp/node" \
	2>"$tmp/log" &
attacher=$!
wait_line "$tmp/node" "^$node"
nbd-client -d /dev/nbd0
expect_exit $attacher 1
grep -q "was removed by another program" "$tmp/log" || fail "the log does not say why it ends"
detached || fail "it is still there"

# Two at once: no user is named that is not there.
for _ in {1..5}; do
	attach
	"$RTRS_DETACH" disk0 2>"$tmp/err.1" &
	detacher=$!
	"$RTRS_DETACH" disk0 2>"$tmp/err.2" || true
	wait $detacher || true
	cat "$tmp/err.1" "$tmp/err.2"
	must_fail grep "cannot see" "$tmp/err.1" "$tmp/err.2"
	detached || fail "it is still there"
done

# All of several.
attach
"$RTRS_ATTACH" --via=nbd "127.0.0.1:$server_port/other"
[ "$(blockdev --getsize64 /dev/rtrs/other)" -eq $((8 << 20)) ] || fail "the other has another size"
"$RTRS_DETACH" --all
wait_until "the end of the device" detached
[ ! -e /dev/rtrs/other ] || fail "the other one is still there"
