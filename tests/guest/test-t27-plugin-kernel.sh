#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=600 full
# guest: kernel=6.12 timeout=600 full
# guest: kernel=6.1 timeout=600 full
# nbdkit against the kernel's own rnbd-server on a RAM disk, with always_invalidate=Y (its default:
# a new chunk key with each answer) and N, with static keys for reads and with memory windows, which
# the server takes away: information, copies, odd and large requests, trim, read-only, a device that
# is not there, one under two names, and the module unloaded and loaded again under load.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_plugin
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"

modprobe brd rd_nr=1 rd_size=67584
disk=/dev/ram0 size=69206016

kit() {
	start_nbdkit -v -- "$ip4" transport=rdma "io-timeout=$TIMEOUT_S" "$@"
}

information() {
	timeout "$TIMEOUT_S" nbdinfo "$uri" >"$tmp/info"
	grep -q "export-size: $size" "$tmp/info"
	grep -q 'is_read_only: false' "$tmp/info"
	# What can be discarded there can be trimmed here.
	if [ "$(cat /sys/block/ram0/queue/discard_max_bytes)" -gt 0 ]; then
		grep -q 'can_trim: true' "$tmp/info"
	else
		grep -q 'can_trim: false' "$tmp/info"
	fi
	grep -q "queue depth 128" "$nbdkit_log"
}

copies() {
	random_file "$tmp/in" $((8 << 20))
	timeout $((4 * TIMEOUT_S)) nbdcopy "$tmp/in" "$uri"
	cmp -n $((8 << 20)) "$tmp/in" "$disk"
	head -c $((8 << 20)) /dev/urandom |
		dd of="$disk" bs=1M oflag=direct iflag=fullblock status=none
	timeout $((4 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/out"
	cmp "$tmp/out" "$disk"
	rm "$tmp/in" "$tmp/out"
}

sizes() {
	nbdsh_run "$uri" <<'END'
import os
h.set_strict_mode(0)
data = os.urandom(64 << 20)
h.pwrite(data, 0)
assert h.pread(len(data), 0) == data, "64 MiB"
shadow = bytearray(data)
for n in 1, 511, 513, 4097, 126975, 126976, 126977, (1 << 20) + 7:
    h.pwrite(data[n:2 * n], 1000003)
    shadow[1000003:1000003 + n] = data[n:2 * n]
    assert h.pread(n, 1000003) == data[n:2 * n], n
# A server that takes no WRITE_ZEROES: nbdkit writes zeroes, rtrs-nbd leaves that to the client.
assert h.can_zero() or os.environ.get("NBD_FRONT") == "rtrs-nbd"
if h.can_zero():
    h.zero(100000, 2000001)
    shadow[2000001:2100001] = bytes(100000)
h.flush()
assert h.pread(3 << 20, 0) == bytes(shadow[:3 << 20]), "neighbours"
if h.can_trim():
    h.trim(1 << 20, 4 << 20)
    assert h.pread(1 << 20, 4 << 20) in (bytes(1 << 20), bytes(shadow[4 << 20:5 << 20])), "trim"
    assert h.pread(4 << 20, 0) == bytes(shadow[:4 << 20]), "before the trimmed range"
    assert h.pread(1 << 20, 5 << 20) == bytes(shadow[5 << 20:6 << 20]), "behind it"
try:
    h.pread(4096, h.get_size())
    assert False, "read behind the end"
except nbd.Error:
    pass
END
}

verify() {
	(cd "$tmp" && timeout $((4 * TIMEOUT_S)) fio --name=verify --ioengine=nbd --uri="$uri" \
		--rw=randwrite --bsrange=4k-64k --size=8M --iodepth=16 --verify=crc32c \
		--verify_state_save=0 \
		--verify_fatal=1 --verify_dump=0 --randrepeat=0 --eta=never) >"$tmp/fio.log"
	grep -q 'err= 0' "$tmp/fio.log"
}

unloaded_under_load() {
	local load turn
	load_until "$tmp/stop" "$uri" &
	load=$!
	for turn in 1 2; do
		load_goes_on "IO before unloading $turn" "$tmp/stop"
		modprobe -r rnbd-server
		modprobe rnbd-server dev_search_path=/dev
	done
	load_goes_on "IO after the last one" "$tmp/stop"
	touch "$tmp/stop"
	expect_exit $load 0
	rm "$tmp/stop"
	grep -q 'lost: ' "$nbdkit_log"
	grep -q 'connected again after' "$nbdkit_log"
}

# By the server, all of them.
invalidated() {
	sed -n 's/.*windows: //p' "$nbdkit_log" >"$tmp/windows"
	cat "$tmp/windows"
	awk '{ theirs += $3; ours += $8; missing += $11 }
	     END { exit !(theirs > 500 && !ours && !missing) }' "$tmp/windows"
}

# A second name for an open device locks the server up for good: it must not get there.
two_names() {
	kit mode=ro
	SOCK=$sock nbdsh_run "nbd+unix:///ram0?socket=$sock" <<'END'
import os
def open_as(name):
    other = nbd.NBD()
    other.set_export_name(name)
    other.connect_unix(os.environ["SOCK"])
    assert other.pread(512, 0) == h.pread(512, 0)
    other.shutdown()
open_as("ram0")
for name in "/ram0", "./ram0", "//ram0":
    try:
        open_as(name)
        assert False, name
    except nbd.Error as ex:
        print(name, ex)
open_as("ram0")
END
	grep -q '/ram0: already open under the name ram0' "$nbdkit_log"
	stop_process "$nbdkit_pid"
}

for always in Y N; do
	modprobe rtrs-server always_invalidate=$always
	modprobe rnbd-server dev_search_path=/dev
	[ "$(cat /sys/module/rtrs_server/parameters/always_invalidate)" = $always ]

	for registration in static window; do
		kit export=ram0 registration=$registration
		information
		copies
		sizes
		verify
		unloaded_under_load
		stop_process "$nbdkit_pid"
		[ $registration = static ] || invalidated
	done

	kit export=ram0 mode=ro
	timeout "$TIMEOUT_S" nbdinfo "$uri" | grep -q 'is_read_only: true'
	nbdsh_run "$uri" <<<'assert h.pread(1 << 20, 0) == open("/dev/ram0", "rb").read(1 << 20)'
	stop_process "$nbdkit_pid"
	expect_nbdkit_failure "'nothing'.*no such export" "$ip4" transport=rdma export=nothing

	two_names

	modprobe -r rnbd-server
	modprobe -r rtrs-server
done
