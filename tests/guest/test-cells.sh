#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=240 full
# guest: kernel=6.12 timeout=240
# guest: kernel=6.1 timeout=240 full
# Each cell of the matrix of peers over RDMA, once and quickly: the plugin with each kind of key on
# our server with each --invalidate, the plugin on the kernel's server with each always_invalidate,
# the kernel's client on our server, and the kernel's NBD client on the plugin.  In each data goes
# both ways and the sums agree.  The scripts of a cell, in check.sh --full, have what this one has
# no time for.  Each kernel has half of the combinations of keys.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"

mib=$((1 << 20))
truncate -s $((16 * mib)) "$tmp/disk"

# both_ways FILE: what an NBD client writes is in FILE, and what is in FILE it reads.
both_ways() {
	random_file "$tmp/in" $((4 * mib))
	timeout $((4 * TIMEOUT_S)) nbdcopy --flush "$tmp/in" "$uri"
	cmp -n $((4 * mib)) "$tmp/in" "$1"
	head -c $((4 * mib)) /dev/urandom |
		dd of="$1" bs=1M seek=4 conv=notrunc,fsync iflag=fullblock status=none
	nbdsh_run "$uri" <<END
h.set_strict_mode(0)
with open("$1", "rb") as f:
    f.seek(4 << 20)
    data = f.read(4 << 20)
assert h.pread(4 << 20, 4 << 20) == data
h.pwrite(data[:100001], 513)
assert h.pread(100003, 512)[1:-1] == data[:100001]
h.zero(8192, 1 << 20, nbd.CMD_FLAG_FUA)
assert h.pread(8192, 1 << 20) == bytes(8192)
END
}

# block_both_ways DEVICE FILE: likewise, by a block device.
block_both_ways() {
	random_file "$tmp/in" $((4 * mib))
	dd if="$tmp/in" of="$1" bs=64k oflag=direct conv=fsync status=none
	cmp -n $((4 * mib)) "$tmp/in" "$2"
	head -c $((4 * mib)) /dev/urandom |
		dd of="$2" bs=1M seek=4 conv=notrunc iflag=fullblock status=none
	cmp <(dd if="$1" bs=64k skip=64 count=64 iflag=direct status=none) \
		<(dd if="$2" bs=64k skip=64 count=64 status=none)
}

# load EXPORT: rtrs-bench writes, reads and verifies; nobody else has it open.
load() {
	timeout $((4 * TIMEOUT_S)) "$top_builddir/rtrs-bench" --transport=rdma --rw=randrw \
		--verify --number-ios=400 --iodepth=8 \
		--bs=8k "$ip4" "$1" | tee "$tmp/load"
	grep -q '^verified [1-9][0-9]* blocks: 0 differ$' "$tmp/load"
}

case $(uname -r) in
6.1.*) ours='never/window copy/static always/window' kernels='Y/static N/window' ;;
*) ours='never/static copy/window always/static' kernels='Y/window N/static' ;;
esac

for keys in $ours; do
	start_server --listen "rdma://$ip4:1234" --invalidate="${keys%/*}" "disk=$tmp/disk"
	echo "== plugin, ${keys#*/}; rtrs-server, ${keys%/*}"
	start_nbdkit -- "$ip4" transport=rdma export=disk registration="${keys#*/}" \
		"io-timeout=$TIMEOUT_S"
	both_ways "$tmp/disk"
	stop_process "$nbdkit_pid"
	load disk
	[ "${keys%/*}" = always ] || stop_server "$server_pid"
done

echo "== the kernel's client; rtrs-server, always"
modprobe rnbd-client
rnbd_map cells disk
block_both_ways "$dev" "$tmp/disk"
rnbd_unmap "$dev"

echo "== the kernel's NBD client; plugin"
nbd_gateway unix "$ip4" transport=rdma export=disk
nbd_attach -connections 1
block_both_ways /dev/nbd0 "$tmp/disk"
nbd_detach
stop_process "$nbdkit_pid"
stop_server "$server_pid"

modprobe brd rd_nr=1 rd_size=16384
for keys in $kernels; do
	modprobe rtrs-server always_invalidate="${keys%/*}"
	modprobe rnbd-server dev_search_path=/dev
	echo "== plugin, ${keys#*/}; the kernel's server, always_invalidate=${keys%/*}"
	start_nbdkit -- "$ip4" transport=rdma export=ram0 registration="${keys#*/}" \
		"io-timeout=$TIMEOUT_S"
	both_ways /dev/ram0
	stop_process "$nbdkit_pid"
	load ram0
	modprobe -r rnbd-server
	modprobe -r rtrs-server
done
