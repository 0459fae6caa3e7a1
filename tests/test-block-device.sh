#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A block device as an export, in the page cache and direct.
. ./tests/functions.sh
requires_server; requires_plugin; requires_root
requires nbdsh --version
requires nbdinfo --version

random_file "$tmp/image" $((16 << 20))
for sector in 512 4096; do
	loop=$(losetup -f --show --sector-size $sector "$tmp/image") || skip "no loop device"
	cleanup_fn losetup -d "$loop"
	for direct in "" ,direct; do
		start_server "disk=$loop$direct"
		start_nbdkit "server=127.0.0.1:$server_port" export=disk
		export loop sector
		nbdsh_run "$uri" <<'END'
import os

M = 1 << 20
def device(offset, n):
    with open(os.environ["loop"], "rb") as f:
        f.seek(offset)
        return f.read(n)

assert h.get_size() == 16 * M
assert h.pread(16 * M, 0) == device(0, 16 * M)
for offset, n in ((0, 4096), (512, 512), (1000, 10000), (M - 1, 2), (16 * M - 512, 512)):
    data = os.urandom(n)
    h.pwrite(data, offset, nbd.CMD_FLAG_FUA)
    assert h.pread(n, offset) == data
    assert device(offset, n) == data, (offset, n)
h.zero(M, 2 * M)
h.zero(M, 4 * M, nbd.CMD_FLAG_NO_HOLE)
h.zero(5000, 6 * M + 100)
if h.can_trim():
    h.trim(M, 8 * M)
h.flush()
assert device(2 * M, M) == bytes(M) and device(4 * M, M) == bytes(M)
assert device(6 * M + 100, 5000) == bytes(5000)
assert h.pread(16 * M, 0) == device(0, 16 * M)
# Blocks of 512 bytes or not: any byte may be written, and 4096 is what costs no read for a write.
assert [h.get_block_size(t) for t in (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED)] == [1, 4096]
END
		stop_process "$nbdkit_pid"
		stop_process "$server_pid"
	done
done

# The kernel reads and writes no part of a block behind the last whole one.  A read ahead over the
# end of these nine blocks would fail, too.  All of the export can be read, and nothing is lost in
# silence.
for tail in 512 3584; do
	truncate -s $((36864 + tail)) "$tmp/tail$tail"
	loop=$(losetup -f --show --sector-size 4096 "$tmp/tail$tail") || skip "no loop device"
	cleanup_fn losetup -d "$loop"
	[ "$(blockdev --getsize64 "$loop")" -eq $((36864 + tail)) ] || break
	for direct in "" ,direct; do
		start_server "disk=$loop$direct"
		grep -q "'$loop' has $((36864 + tail)) bytes, and $tail at its end are no block" \
			"$server_log"
		start_nbdkit "server=127.0.0.1:$server_port" export=disk
		[ "$(nbdinfo --size "$uri")" -eq 36864 ]
		nbdsh_run "$uri" <<'END'
for at in range(0, 36864, 4096):
    h.pread(4096, at)
h.pread(36864, 0)
h.pwrite(bytes(512), 36352)
h.flush()
END
		stop_process "$nbdkit_pid"
		stop_process "$server_pid"
	done
done

# The same where the part of a block comes with a later size, behind a read that has pages in the
# page cache begin reads ahead.
truncate -s 32768 "$tmp/later"
loop=$(losetup -f --show --sector-size 4096 "$tmp/later") || skip "no loop device"
cleanup_fn losetup -d "$loop"
start_server "disk=$loop"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
truncate -s $((1044480 + 3584)) "$tmp/later"
losetup -c "$loop"
"$top_builddir/rtrsctl" --server export resize disk
nbdsh_run "$uri" <<'END'
assert h.get_size() == 1044480
for at in range(0, 1044480, 4096):
    h.pread(4096, at)
h.pread(1044480, 0)
END
