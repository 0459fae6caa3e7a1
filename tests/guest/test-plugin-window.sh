#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=300 full
# guest: kernel=6.12 timeout=300 full
# guest: kernel=6.1 timeout=300 full
# nbdkit with registration=window over soft-RoCE: the server takes each window away with its answer,
# with static chunk keys and with keys that end with their request; data is right, also over kills
# of the server under load, and the device has all it gave back in the end.  auto takes no windows
# here and says why.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"
requires rdma resource show

truncate -s 48M "$tmp/disk"
random_file "$tmp/in" 50331648

in_use() {
	rdma resource show | grep -o -E '(qp|mr|pd|cq) [0-9]+' | tr '\n' ' '
}
nothing_left() {
	[ "$(in_use)" = "$before" ]
}
counted() {
	sed -n 's/.*windows: //p' "$nbdkit_log" | grep -o -E "[0-9]+ $1" |
		awk '{ sum += $1 } END { print sum + 0 }'
}

copies() {
	timeout $((4 * TIMEOUT_S)) nbdcopy "$tmp/in" "$uri"
	cmp "$tmp/in" "$tmp/disk"
	timeout $((4 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/out"
	cmp "$tmp/in" "$tmp/out"
	rm "$tmp/out"
	IMAGE=$tmp/in nbdsh_run "$uri" <<'END'
import os
h.set_strict_mode(0)
data = open(os.environ["IMAGE"], "rb").read()
assert h.pread(33 << 20, 12345) == data[12345:12345 + (33 << 20)]
for n in 1, 511, 513, 4097, 131071, 131073, (1 << 20) + 7:
    assert h.pread(n, 1000003) == data[1000003:1000003 + n], n
END
	(cd "$tmp" && timeout $((4 * TIMEOUT_S)) fio --name=verify --ioengine=nbd --uri="$uri" \
		--rw=randrw --bsrange=4k-64k --size=16M --iodepth=16 --verify=crc32c \
		--verify_state_save=0 --verify_fatal=1 --verify_dump=0 --verify_backlog=64 \
		--randrepeat=0 --eta=never) >"$tmp/fio.log"
	grep -q 'err= 0' "$tmp/fio.log"
}

killed_under_load() {
	local load turn

	rm -f "$tmp/stop"
	load_until "$tmp/stop" "$uri" &
	load=$!
	for turn in 1 2; do
		wait_for_writes "writes before kill $turn" "$tmp/disk"
		kill_process "$server_pid"
		start_server --listen "rdma://$ip4:1234" "$@" "disk=$tmp/disk"
	done
	wait_for_writes "writes after the last restart" "$tmp/disk"
	touch "$tmp/stop"
	expect_exit $load 0
	grep -q 'connected again after' "$nbdkit_log"
}

before=$(in_use)
for invalidate in copy always; do
	start_server --listen "rdma://$ip4:1234" --invalidate=$invalidate "disk=$tmp/disk"
	start_nbdkit -v -- "$ip4" transport=rdma export=disk registration=window \
		"io-timeout=$TIMEOUT_S"
	wait_line "$nbdkit_log" 'registration=window: a window of type 2 for each read$'
	copies
	killed_under_load --invalidate=$invalidate
	stop_process "$nbdkit_pid"
	grep 'windows: ' "$nbdkit_log"
	[ "$(counted 'invalidated by the server')" -gt 500 ]
	[ "$(counted 'by us')" -eq 0 ]
	[ "$(counted missing)" -eq 0 ]
	stop_process "$server_pid"
	wait_until "the device to have all back" nothing_left
done

start_server --listen "rdma://$ip4:1234" "disk=$tmp/disk"
start_nbdkit -v -- "$ip4" transport=rdma export=disk
wait_line "$nbdkit_log" 'registration=auto: static \(.*stop this machine\)'
stop_process "$nbdkit_pid"
must_fail grep 'windows: ' "$nbdkit_log"
