#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the plugin's tests see through NBD is true of rtrs-nbd, too: each of these runs over it.
. ./tests/functions.sh
requires_server; requires_gateway

tests='allow come-back direct durability enospc extents fio-verify flags hangup
	io-timeout ipv6 large large-device list-exports lost-flush multi-conn nbdcopy
	nbdinfo past-end qemu-img qemu-io qemu-storage-daemon readonly reboot-flush
	resize shrunk two-exports unaligned zero-length'
failed=''
for name in $tests; do
	status=0
	NBD_FRONT=rtrs-nbd bash "$top_srcdir/tests/test-$name.sh" \
		</dev/null >"$tmp/$name.out" 2>&1 || status=$?
	echo "$name: $status"
	[ $status -eq 0 ] || [ $status -eq 77 ] || {
		failed="$failed $name"
		tail -n 60 "$tmp/$name.out"
	}
	# It did not take nbdkit all the same.
	[ $status -ne 0 ] || grep -q -E '/rtrs-nbd( |$)' "$tmp/$name.out" || failed="$failed $name"
done
[ -z "$failed" ] || fail "over rtrs-nbd:$failed"
