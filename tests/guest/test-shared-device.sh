#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=600
# guest: kernel=6.1 timeout=600 full
# Two servers share two SCSI disks (shared=yes), each as a host of its own (shared-disk.sh), and the
# client has a path to each.  The server that writes is killed, and frozen: the other one takes the
# reservation, and the late writes of a server that thaws never land, whoever writes by then.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/shared-disk.sh"
. "$top_srcdir/tests/shared-load.sh"
requires_server; requires_plugin
requires fio --enghelp=nbd
requires nbdsh --version
host=$top_builddir/tests/guest/pr-host
faults=3

shared_target_up
truncate -s 64M "$tmp/disk.img"
truncate -s 16M "$tmp/flushed.img"
shared_store disk "$tmp/disk.img" $((64 << 20))
shared_store flushed "$tmp/flushed.img" $((16 << 20))
shared_login 1
shared_login 2
declare -A disk flushed port_of pid log
read -r "disk[a]" "flushed[a]" <<<"${disks_of[1]}"
read -r "disk[b]" "flushed[b]" <<<"${disks_of[2]}"
port_of=([a]=1235 [b]=1236)
# The whole of a backstore, as another reader of it sees it.
image_export() { cp "$tmp/$1.img" "$2"; }

serve() {
	mkdir -p "$tmp/$1.state"
	start_server --listen "tcp://127.0.0.1:${port_of[$1]}" --control "$tmp/$1.ctl" \
		--state-dir "$tmp/$1.state" "disk=${disk[$1]},shared=yes" \
		"flushed=${flushed[$1]},shared=yes"
	pid[$1]=$server_pid
	log[$1]=$server_log
}
was_fenced() { grep -q "disk: another server has taken the store over" "${log[$1]}"; }
holder() { "$host" "${disk[a]}" 1 look | cut -d ' ' -f 2; }
is_free() { [ "$("$host" "${disk[a]}" 1 look | cut -d ' ' -f 1,2)" = "ok free" ]; }
start_client() {
	start_nbdkit path=127.0.0.1:1235 path=127.0.0.1:1236 heartbeat=100 heartbeat-misses=2 \
		"io-timeout=$((10 * TIMEOUT_S))"
	wait_until "a path that stands by" stands_by
}

echo "what cannot be shared"
refused() {
	local words=$1

	shift
	must_fail "$RTRS_SERVER" --strict --listen tcp://127.0.0.1:0 \
		--state-dir "$tmp/refused.state" \
		--control "$tmp/refused.ctl" "$@" 2>"$tmp/refused"
	cat "$tmp/refused"
	grep -q "$words" "$tmp/refused"
}
refused 'no lock of a file system fences' "d=$tmp/disk.img,shared=yes"
refused 'shared=yes and force together' "d=${disk[a]},shared=yes,force"
refused 'all names of a shared device need' "d=${disk[a]},shared=yes" "e=${disk[a]},readonly"
modprobe null_blk nr_devices=1 gb=1
refused 'shared=yes: ' "d=/dev/nullb0,shared=yes"
modprobe -r null_blk

echo "two ways to one disk in one server"
start_server --listen tcp://127.0.0.1:0 --state-dir "$tmp/two.state" --control "$tmp/two.ctl" \
	"x=${disk[a]}" "z=${flushed[a]}" "y=${disk[b]}"
grep -F "y: '${disk[b]}' and '${disk[a]}' of export 'x' are the same disk" "$server_log"
[ "$(grep -c 'are the same disk' "$server_log")" = 1 ]
stop_server "$server_pid"

serve a
serve b
start_client
shared_load_start
goes_on "the start"

shared_kills "$faults"

for ((turn = 0; turn < faults; turn++)); do
	at=$(owner)
	stop_all_threads "${pid[$at]}"
	goes_on "server $at was frozen"
	kill -CONT "${pid[$at]}"
	wait_until "the end of server $at as owner" was_fenced "$at"
	wait_until "a path that stands by" stands_by
	owns "$(other_than "$at")" disk
done

answered=$(flushed_by_now)
at=$(owner)
kill_process "${pid[$at]}"
flushed_check "$answered"
serve "$at"
wait_until "a path that stands by" stands_by
goes_on "the end of faults"
shared_load_end

echo "late writes of a frozen server do not land when the other one is idle"
# The client ends, and its last server has the device without a writer.
stop_nbdkit() {
	kill "$nbdkit_pid"
	wait_until "the end of nbdkit" process_ended "$nbdkit_pid"
}
stop_nbdkit
# Both hosts are known to the device, so nobody keeps it.
wait_until "a free device" is_free
start_client
nbdsh -u "$(at disk)" -c - <<-PY &
	import os, time
	h.pwrite(b"1" * 65536, 0)
	open("$tmp/wrote", "w").close()
	while not os.path.exists("$tmp/frozen"):
	    time.sleep(0.01)
	# They lie in the sockets of the frozen server, and the other server carries them out.
	cookies = [h.aio_pwrite(bytes([65 + i]) * 65536, 65536 * i) for i in range(16)]
	while h.aio_in_flight():
	    h.poll(-1)
	assert all(h.aio_command_completed(c) for c in cookies)
	for i in range(16):
	    h.pwrite(bytes([97 + i]) * 65536, 65536 * i)
	h.flush()
PY
client=$!
wait_until "a write" test -e "$tmp/wrote"
at=$(owner) on=$(other_than "$at")
stop_all_threads "${pid[$at]}"
: >"$tmp/frozen"
expect_exit $client 0
stop_nbdkit
wait_until "an idle server" must_fail owns "$on" disk
sum=$(md5sum <"$tmp/disk.img")
# It keeps the device for itself, as long as the frozen host has not come back.
holder | grep other
# Nor does a server that begins anew, and finds the reservation of the one before it.
kill_process "${pid[$on]}"
serve "$on"
grep "disk: this server's key .* left the reservation to it" "${log[$on]}"
holder | grep other
kill -CONT "${pid[$at]}"
wait_until "the end of server $at as owner" was_fenced "$at"
wait_until "a free device" is_free
[ "$(md5sum <"$tmp/disk.img")" = "$sum" ]
start_client
nbdsh -u "$(at disk)" -c 'h.pwrite(b"2" * 4096, 0)'

echo "an owner whose client has no request, or reads, learns that the device is another one's"
nbdsh -u "$(at disk)" -c - <<-PY &
	import os, time
	assert h.pread(4096, 0) == b"2" * 4096
	open("$tmp/opened", "w").close()
	while not os.path.exists("$tmp/taken"):
	    time.sleep(0.01)
	assert h.pread(4096, 0) == b"3" * 4096
	h.pwrite(b"4" * 4096, 4096)
PY
client=$!
wait_until "the open" test -e "$tmp/opened"
at=$(owner) on=$(other_than "$at")
fences() { grep -c "disk: another server has taken the store over" "${log[$at]}" || true; }
before=$(fences)
fenced_again() { [ "$(fences)" -gt "$before" ]; }
"$top_builddir/rtrsctl" --socket "$tmp/$on.ctl" --force export break disk
wait_until "the end of server $at as owner, without a request" fenced_again
"$host" "${disk[$on]}" 1 write "$(printf %d "'3")" 0
: >"$tmp/taken"
expect_exit $client 0

echo "another name of the device goes on when the first one goes"
stop_nbdkit
"$top_builddir/rtrsctl" --socket "$tmp/$on.ctl" export add "second=${disk[$on]},shared=yes"
start_nbdkit "path=127.0.0.1:${port_of[$on]}" export=second
rm -f "$tmp/wrote"
nbdsh -u "$(at second)" -c - <<-PY &
	import os, time
	h.pwrite(b"5" * 4096, 0)
	open("$tmp/wrote", "w").close()
	while not os.path.exists("$tmp/removed"):
	    time.sleep(0.01)
	h.pwrite(b"6" * 4096, 0)
PY
client=$!
wait_until "a write" test -e "$tmp/wrote"
"$top_builddir/rtrsctl" --socket "$tmp/$on.ctl" export remove disk
# Behind the end of the name that was removed.
"$top_builddir/rtrsctl" --socket "$tmp/$on.ctl" export add "third=${disk[$on]},shared=yes"
must_fail is_free
: >"$tmp/removed"
expect_exit $client 0
stop_nbdkit
wait_until "a free device" is_free
start_nbdkit "path=127.0.0.1:${port_of[$on]}" export=third
nbdsh -u "$(at third)" -c 'h.pwrite(b"7" * 4096, 0)'
