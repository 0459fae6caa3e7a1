#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=90 full
# guest: kernel=6.12 timeout=90 full
# --listen rdma://: what cannot be listened on is refused with a reason, IPv6 works, and so do two
# listeners; a path that RLIMIT_MEMLOCK leaves no memory for is refused at once, and the log says
# what it would take.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
requires setpriv --version
requires prlimit --version

truncate -s 1M "$tmp/disk" "$tmp/other"

# expect_listen_error REGEX ADDRESS
expect_listen_error() {
	expect_failure 1 "$1" "$RTRS_SERVER" --listen "$2" disk="$tmp/other"
}

# An interface without RDMA device.
ip addr add 10.99.0.1/32 dev lo
cleanup_fn ip addr del 10.99.0.1/32 dev lo
expect_listen_error 'rdma://10.99.0.1:1234: No such device: no RDMA device has the address' \
	rdma://10.99.0.1
expect_listen_error 'rdma://10.98.0.1:1234: .*no interface of this machine has the address' \
	rdma://10.98.0.1

start_server --listen "rdma://$ip4:1234" --listen "rdma://[$ip6]:1234" disk="$tmp/disk"
wait_line "$server_log" "listening on rdma://$ip4:1234"
wait_line "$server_log" "listening on rdma://\[$ip6\]:1234"
expect_listen_error "rdma://$ip4:1234: Address already in use: another program" "rdma://$ip4"
modprobe rnbd-client
for rnbd_ip in "$ip4" "$ip6"; do
	rnbd_map "s${rnbd_ip//[.:]/-}" disk
	cmp "$dev" "$tmp/disk"
	rnbd_unmap "$dev"
done
rnbd_ip=$ip4
stop_server "$server_pid"

# server_may_lock BYTES OPTION...: root is not bound by the limit, so take that right away.
server_may_lock() {
	SERVER_PREFIX="setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock prlimit --memlock=$1" \
		start_server --listen "rdma://$ip4:1234" "${@:2}" disk="$tmp/disk"
}

# refused KIB NEED OPTION...: no path at all; the client hears of it at once, and the log names the
# limit, what it is, and what it would have to be.
refused() {
	server_may_lock $(($1 << 10)) "${@:3}"
	[ "$(tenths must_fail rnbd_map s2 disk)" -lt 50 ] || fail "the refusal took long"
	grep -q "connection refused: .*RLIMIT_MEMLOCK is $1 KiB for all, and this path locks more than $2 KiB: raise it (ulimit -l, LimitMEMLOCK=" \
		"$server_log" || fail "no word of the limit"
	stop_server "$server_pid"
}
refused 64 268 --queue-depth=2 # ulimit -l 64
refused 64 16900
refused 16384 16900

# What it says is what it takes: a path of the default size, and no private memory beside it.
server_may_lock $((17 << 20))
rnbd_map s3 disk
cmp "$dev" "$tmp/disk"
pinned=$(sed -n 's/^VmPin:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$server_pid/status")
echo "pinned by one path: $pinned kB"
[ "$pinned" -ge 16900 ] && [ "$pinned" -lt 17000 ] || fail "a path pins $pinned kB"
rnbd_unmap "$dev"
