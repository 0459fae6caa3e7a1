#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libnbd's own tests of its Python module, from LIBNBD_SOURCE, on a gateway (libnbd-script.py):
# those whose disk a plugin of nbdkit makes with a size or of a file.  590-aio-copy copies 512 MiB
# with as many writes in flight as the other end takes.  build-aux/newest.sh runs this, with the
# libnbd of that source.
. ./tests/functions.sh
requires_server; requires_plugin
[ -d "${LIBNBD_SOURCE-}/python/t" ] ||
	skip "LIBNBD_SOURCE names no source of libnbd; ./check.sh --full=newest fetches it"

dir=$tmp/libnbd
mkdir -p "$dir/disks" "$dir/t"
cp "$top_srcdir/tests/libnbd-script.py" "$dir"
cp "$LIBNBD_SOURCE"/python/t/*.py "$dir/t"
# Big-endian numbers of 64 bits, as nbdkit-pattern-plugin(1) has them.
/usr/bin/python3 - "$dir/disks/pattern-536870912" <<'END'
import array, sys
numbers = array.array("Q", range(0, 512 << 20, 8))
numbers.byteswap()
numbers.tofile(open(sys.argv[1], "wb"))
END
head -c 512 "$dir/disks/pattern-536870912" >"$dir/disks/pattern-512"
head -c 1024 "$dir/disks/pattern-536870912" >"$dir/disks/pattern-1024"
truncate -s 1M "$dir/disks/null-1048576" "$dir/disks/memory-1M"

# What plays on these disks, at least.
expected="300 400 405 410 500 505 510 590"

# suite KEYS: of the gateway at $sock.
suite() {
	local script scripts

	: >"$dir/met"
	truncate -s 0 "$dir/disks/memory-536870912"
	truncate -s 512M "$dir/disks/memory-536870912"
	cd "$dir" || exit
	mapfile -t scripts < <(grep -l -E '"(size=|file")' t/*.py)
	for script in "${scripts[@]}"; do
		timeout $((20 * TIMEOUT_S)) \
			python3 libnbd-script.py "$dir" "$sock" "$1" "$script" ||
			fail "$script"
	done
	cd "$top_builddir" || exit
	[ "$(grep -c '^590' "$dir/met")" -eq 2 ]
	cmp "$dir/disks/pattern-536870912" "$dir/disks/memory-536870912"
	for script in $expected; do
		grep "^$script-" "$dir/met" || fail "$script has not met a gateway"
	done
}

# exports: the arguments of a server.  Two of the tests make their file anew, and remove it.
exports() {
	local name

	for name in 410 510; do
		truncate -s 512 "$dir/$name-pwrite.data" "$dir/disks/file-$name-pwrite.data"
		echo "file-$name-pwrite.data=$dir/$name-pwrite.data"
	done
	for name in null-1048576 memory-1M memory-536870912 pattern-512 pattern-1024 \
		pattern-536870912; do
		echo "$name=$dir/disks/$name"
	done
}

# begin [GATEWAY-OPTION...]
begin() {
	# shellcheck disable=SC2046 # words
	start_server $(exports)
	start_nbdkit "$@" "server=127.0.0.1:$server_port"
}

truncate -s 512M "$dir/disks/memory-536870912"
begin
suite ''
stop_process "$nbdkit_pid"
stop_process "$server_pid"
# nbdkit's TLS is nbdkit's.
[ "$NBD_FRONT" = rtrs-nbd ] || exit 0
umask 077
"$top_builddir/rtrs-psk" alice >"$dir/keys"
begin --tls=require --tls-psk="$dir/keys"
suite "$dir/keys"
