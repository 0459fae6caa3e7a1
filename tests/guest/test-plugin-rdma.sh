#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=240 full
# guest: kernel=6.12 timeout=240 full
# nbdkit and rtrs-server over RDMA: what transport= takes and says, copies and checksums, and a
# server that is killed under load.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
"$RTRS_SERVER" --version >/dev/null
nbdkit "$RTRS_PLUGIN" --dump-plugin | grep -q -x 'rtrs_transports=.*rdma' ||
	skip "built without rdma-core"

truncate -s 48M "$tmp/disk" "$tmp/other"
listen=(--listen "rdma://$ip4:1234" --listen "rdma://[$ip6]:1234")
start_server "${listen[@]}" "disk=$tmp/disk"

# ---- what it takes, and what it says ----
takes() {
	local regex=$1
	shift
	start_nbdkit -v -- "$@" export=disk
	[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 50331648 ]
	stop_process "$nbdkit_pid"
	grep -q -E -- "$regex" "$nbdkit_log" || fail "the log does not say '$regex'"
}
takes 'connected: [0-9]+ connections, queue depth 128' "$ip4" transport=rdma
takes 'transport=auto: rdma, because an RDMA device reaches' "$ip4"
takes 'transport=auto: rdma' "[$ip6]:1234"
takes 'connected:' "rdma://$ip4"
# No server listens there for RDMA.
expect_nbdkit_failure "$ip4:1235.*no server listens" "$ip4:1235" transport=rdma export=disk
expect_nbdkit_failure \
	"$ip4:1235: Connection refused \(no rtrs-server listens there.*\(over rdma, too\)" \
	"$ip4:1235" export=disk
# An address that no RDMA device has.
ip addr add 10.9.0.1/32 dev lo
cleanup_fn ip addr del 10.9.0.1/32 dev lo
expect_nbdkit_failure 'no RDMA device reaches' 10.9.0.1:1234 transport=rdma export=disk
rdma_server=$server_pid
start_server --listen tcp://10.9.0.1:1234 --listen "tcp://$ip4:1235" "disk=$tmp/other"
takes 'transport=auto: tcp, because of rdma: no RDMA device reaches' 10.9.0.1
takes 'transport=auto: tcp, because of rdma: no server listens there' "$ip4:1235"
stop_process "$server_pid"
server_pid=$rdma_server

# Too little memory may be locked, and root may not lock more either.
must_fail timeout "$TIMEOUT_S" prlimit --memlock=1048576 setpriv --bounding-set=-ipc_lock \
	"${nbd_front[@]}" -f -U "$tmp/small.sock" "$ip4" transport=rdma export=disk \
	>"$tmp/small.out" 2>&1
cat "$tmp/small.out"
grep -q 'at most 1024 KiB may be locked; raise that limit (RLIMIT_MEMLOCK' "$tmp/small.out"

# ---- data ----
start_nbdkit "$ip4" transport=rdma export=disk "io-timeout=$TIMEOUT_S"
random_file "$tmp/in" 50331648
timeout $((4 * TIMEOUT_S)) nbdcopy "$tmp/in" "$uri"
cmp "$tmp/in" "$tmp/disk"
timeout $((4 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/out"
cmp "$tmp/in" "$tmp/out"
rm "$tmp/in" "$tmp/out"
# Odd sizes, one request beyond all permits, trim, and zeroes.
nbdsh_run "$uri" <<'END'
import os
h.set_strict_mode(0)
data = os.urandom(33 << 20)
h.pwrite(data, 12345)
assert h.pread(len(data), 12345) == data
for n in 1, 511, 513, 4097, 131071, 131073, (1 << 20) + 7:
    h.pwrite(data[:n], 1000003)
    assert h.pread(n, 1000003) == data[:n]
h.zero(100000, 2000001)
assert h.pread(100002, 2000000)[1:-1] == bytes(100000)
h.trim(1 << 20, 4 << 20)
h.flush()
END

# ---- fio verifies ----
(cd "$tmp" &&
	timeout $((4 * TIMEOUT_S)) fio --name=verify --ioengine=nbd --uri="$uri" --rw=randwrite \
	--bsrange=4k-64k --size=32M --iodepth=16 --verify=crc32c \
	--verify_state_save=0 --verify_fatal=1 --verify_dump=0 \
	--randrepeat=0 --eta=never) >"$tmp/fio.log"
grep -q 'err= 0' "$tmp/fio.log"

# ---- the server is killed under load ----
load_until "$tmp/stop" "$uri" &
load=$!
for turn in 1 2 3; do
	wait_for_writes "writes before kill $turn" "$tmp/disk"
	kill_process "$server_pid"
	start_server "${listen[@]}" "disk=$tmp/disk"
done
wait_for_writes "writes after the last restart" "$tmp/disk"
touch "$tmp/stop"
expect_exit $load 0
