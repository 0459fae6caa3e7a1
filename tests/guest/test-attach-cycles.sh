#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 smp=1 clock=instructions timeout=400 full
# A device that is attached and detached, [50] times by each driver, leaves nothing: at the server
# no session, descriptor or memory; at the client no file, process, node or memory of the kernel.
#
# For another number:	run.sh --timeout 3000 tests/guest/test-attach-cycles.sh 1000
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/attach.sh"
cycles=${1:-50}
modprobe -a nbd ublk_drv

# Noise of caches of the kernel and the allocator; a disk has more.
noise_kib=4096

cycle() {
	attach
	dd if=$node of=/dev/null bs=4k count=1 iflag=direct status=none
	"$RTRS_DETACH" disk0
}

nobody() {
	"$top_builddir/rtrsctl" --pid "$server_pid" --json show | grep -q '"sessions":\[\]'
}

# What there is, a line each, and must be the same afterwards.
things() {
	echo "descriptors of the server: $(descriptors "$server_pid")"
	echo "threads of the server: $(find "/proc/$server_pid/task" -mindepth 1 -maxdepth 1 | wc -l)"
	echo "processes: $(pgrep -c -f rtrs-attach || true)"
	# The kernel makes a disk of nbd for the first device, and keeps it.
	ls /sys/block /sys/class/ublk-char /dev/rtrs /run/rtrs/attach 2>/dev/null || true
	ls -d /dev/ublk[bc]* /dev/nbd* 2>/dev/null || true
}

# Of the kernel: what it can give back is no leak.
kernel_kib() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^(SUnreclaim|KernelStack|PageTables|Percpu|VmallocUsed):/ { n += $2 }
		END { print n }' /proc/meminfo
}

server_kib() {
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$server_pid/status"
}

# at_most BEFORE AFTER WHAT
at_most() {
	echo "$3: $1 KiB before $cycles cycles, $2 KiB after them"
	[ "$2" -le $(($1 + noise_kib)) ] || fail "$3 has grown from $1 to $2 KiB"
}

begin_server
for via in nbd ublk; do
	for ((i = 0; i < 5; i++)); do
		cycle
	done
	wait_until "the end of the session" nobody
	things >"$tmp/before"
	kernel=$(kernel_kib) server=$(server_kib)
	{ set +x; } 2>/dev/null
	for ((i = 0; i < cycles; i++)); do
		cycle
	done
	wait_until "the end of the session" nobody
	things >"$tmp/after"
	diff -u "$tmp/before" "$tmp/after" || fail "more is there than before"
	at_most "$kernel" "$(kernel_kib)" "memory of the kernel"
	at_most "$server" "$(server_kib)" "memory of the server"
done
