#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 nics=2 timeout=300
# guest: kernel=6.1 nics=2 timeout=300 full
# Sessions with two paths over two RDMA devices, one of which goes away under a load that verifies:
# the plugin on our server, over RDMA alone and with a path over tcp; the kernel's client on our
# server; the plugin on the kernel's server.  No request fails.  (test-paths-rack.sh pulls cables.)
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
requires fio --version
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"

other4=10.2.0.$GUEST_ID
truncate -s 48M "$tmp/disk"

# count REGEX FILE
count() {
	grep -c -E -- "$1" "$2" || true
}

lines_above() {
	[ "$(count "$1" "$2")" -gt "$3" ]
}

# reconnects ADDRESS: how often the path to it has come back.  The log does not tell again what a
# path does again within seconds.
reconnects() {
	"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/nbdkit-$nbdkit_pid.sock" --json stats |
		/usr/bin/python3 -c "
import json, sys
[session] = json.load(sys.stdin)['sessions']
print(next(p['reconnects'] for p in session['paths'] if p['dst_addr'] == '$1:1234'))"
}

came_back() {
	[ "$(reconnects "$1")" -gt "$2" ]
}

# begin_load: turns of $uri are counted in $tmp/stop.turns.
begin_load() {
	rm -f "$tmp/stop"
	load_until "$tmp/stop" "$uri" &
	load=$!
}

end_load() {
	touch "$tmp/stop"
	expect_exit "$load" 0
}

# It waits for everybody who has the device open, and cannot be killed meanwhile.
delete_rxe() {
	rdma link delete "rxe$1" &
	wait_until "the end of rxe$1" process_ended $!
	wait $!
}

# device_goes N ADDRESS: the path to ADDRESS is that of rxeN.
device_goes() {
	local back listens

	back=$(reconnects "$2")
	listens=$(count "rdma://$2:1234: listening again" "$server_log")
	load_goes_on "IO before rxe$1 goes" "$tmp/stop"
	delete_rxe "$1"
	load_goes_on "IO without rxe$1" "$tmp/stop"
	rdma link add "rxe$1" type rxe netdev "eth$1"
	wait_until "the listener" lines_above "rdma://$2:1234: listening again" "$server_log" \
		"$listens"
	wait_until "the path" came_back "$2" "$back"
	load_goes_on "IO with rxe$1 again" "$tmp/stop"
}

echo "== the plugin, two devices"
start_server --listen "rdma://$ip4:1234" --listen "rdma://$other4:1234" \
	--listen "tcp://$other4:1234" \
	"disk=$tmp/disk"
start_nbdkit "$ip4" "path=$other4" transport=rdma export=disk connections=2
wait_until "both paths" lines_above 'path up, 3 connections, session .*-[0-9a-f]{8}$' \
	"$server_log" 1
begin_load
device_goes 1 "$other4"
device_goes 0 "$ip4"
end_load
stop_process "$nbdkit_pid"

echo "== the plugin, a device and tcp"
start_nbdkit "rdma://$ip4" "path=tcp://$other4" export=disk connections=2
begin_load
device_goes 0 "$ip4"
end_load
stop_process "$nbdkit_pid"

# One load after the other, until $tmp/stop is there; each is read back and compared.
block_load() {
	local turns=0

	echo 0 >"$tmp/stop.turns"
	until [ -e "$tmp/stop" ]; do
		fio --name=load --filename="$1" --direct=1 --ioengine=libaio --iodepth=16 \
			--rw=randwrite \
			--bsrange=4k-64k --size=4m --verify=crc32c --verify_state_save=0 \
			--verify_fatal=1 \
			--output="$tmp/fio.out" || { cat "$tmp/fio.out"; exit 1; }
		turns=$((turns + 1))
		echo $turns >"$tmp/stop.turns"
	done
}

# kernel_path ADDRESS: its directory.
kernel_path() {
	echo "$rtrs_sysfs/two/paths/"*"@ip:$1"
}

kernel_path_is() {
	[ "$(cat "$(kernel_path "$1")/state")" = "$2" ]
}

echo "== the kernel's client"
modprobe rnbd-client
rnbd_map two disk "path=ip:$other4@ip:$other4"
kernel_path_is "$ip4" connected
kernel_path_is "$other4" connected
rm -f "$tmp/stop"
block_load "$dev" &
load=$!
for path in "$other4" "$ip4"; do
	load_goes_on "IO over both" "$tmp/stop"
	echo 1 >"$(kernel_path "$path")/disconnect"
	kernel_path_is "$path" disconnected
	load_goes_on "IO over one" "$tmp/stop"
	echo 1 >"$(kernel_path "$path")/reconnect"
	kernel_path_is "$path" connected
done
load_goes_on "IO over both" "$tmp/stop"
touch "$tmp/stop"
expect_exit $load 0
rnbd_unmap "$dev"
stop_server "$server_pid"

# server_path ADDRESS: of the session that the kernel's server has from the plugin.
server_path() {
	find /sys/devices/virtual/rtrs-server/*/paths -mindepth 1 -maxdepth 1 -name "*$1" |
		head -n 1
}

server_path_is_up() {
	[ -n "$(server_path "$1")" ]
}

echo "== the kernel's server"
modprobe brd rd_nr=1 rd_size=49152
modprobe rtrs-server
modprobe rnbd-server dev_search_path=/dev
start_nbdkit "$ip4" "path=$other4" transport=rdma export=ram0 connections=2
begin_load
for path in "$other4" "$ip4"; do
	wait_until "the path to $path" server_path_is_up "$path"
	back=$(reconnects "$path")
	load_goes_on "IO over both" "$tmp/stop"
	echo 1 >"$(server_path "$path")/disconnect"
	load_goes_on "IO after the loss of the path to $path" "$tmp/stop"
	wait_until "the path" came_back "$path" "$back"
done
load_goes_on "IO over both" "$tmp/stop"
end_load
stop_process "$nbdkit_pid"
