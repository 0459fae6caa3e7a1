#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=200 full
# guest: kernel=6.1 timeout=200 full
# The lock of a server that was killed is kept by this kernel until the device has ended its last
# request: as long as nobody else can lock the device something may be in flight, and afterwards
# nothing is.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
requires nbdsh --version

# A disk that takes three seconds for a request.
modprobe null_blk nr_devices=0
nullb=/sys/kernel/config/nullb/slow
[ -d /sys/kernel/config/nullb ] || mount -t configfs configfs /sys/kernel/config
mkdir "$nullb"
echo 2 >"$nullb/irqmode"
echo 3000000000 >"$nullb/completion_nsec"
echo 64 >"$nullb/size"
echo 1 >"$nullb/power"
remove_disk() {
	wait_until "the disk to go" rmdir "$nullb"
	modprobe -r null_blk
}
cleanup_fn remove_disk
disk=/dev/slow
in_flight() {
	awk '{ print $1 + $2 }' "/sys/block/${disk#/dev/}/inflight"
}
busy() { [ "$(in_flight)" -gt 0 ]; }

for invalidate in copy never; do
	start_server --invalidate=$invalidate "disk=$disk,direct"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	nbdsh_run "$uri" <<'END' &
h.aio_pwrite(b"x" * 4096, 0)
while True:
    h.poll(-1)
END
	client=$!
	wait_until "a write in the storage" busy
	kill_process "$server_pid"
	seen=no
	until flock --nonblock "$disk" true; do
		seen=yes
	done
	[ "$(in_flight)" -eq 0 ] ||
		fail "nobody has the lock, and $(in_flight) requests are in flight"
	[ $seen = yes ] || fail "nobody had the lock: the disk was too quick"
	kill_process $client
	kill_process "$nbdkit_pid"
done
