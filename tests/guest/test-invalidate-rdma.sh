#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 smp=4 timeout=400 full
# guest: kernel=6.1 smp=4 timeout=400 full
# Keys of chunks over RDMA, with windows of the device: with --invalidate=always the plugin's copies
# and checksums, and a client and a server that are killed (a queue pair that is destroyed with a
# window bound takes 50 s); with each --invalidate writes at a wrong time or place, by a client
# (tests/test-attack.sh) and by a server.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
requires fio --enghelp=nbd

truncate -s 48M "$tmp/disk"
serve() {
	start_server --listen "rdma://$ip4:1234" --invalidate=always \
		--log-level=debug "disk=$tmp/disk"
}
# quickly COMMAND...: not as one that waits 50 s for a queue pair.
quickly() {
	local begin=${EPOCHREALTIME/./}

	"$@"
	[ $((${EPOCHREALTIME/./} - begin)) -lt 10000000 ] || fail "$* took long"
}
serve
start_nbdkit "$ip4" transport=rdma export=disk "io-timeout=$TIMEOUT_S"
wait_line "$server_log" 'requests over rdma: invalidate is always: MW1'

echo "== data"
random_file "$tmp/in" 50331648
timeout $((4 * TIMEOUT_S)) nbdcopy "$tmp/in" "$uri"
cmp "$tmp/in" "$tmp/disk"
timeout $((4 * TIMEOUT_S)) nbdcopy "$uri" "$tmp/out"
cmp "$tmp/in" "$tmp/out"
rm "$tmp/in" "$tmp/out"
nbdsh_run "$uri" <<'END'
import os
h.set_strict_mode(0)
data = os.urandom(9 << 20)
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
(cd "$tmp" &&
	timeout $((4 * TIMEOUT_S)) fio --name=verify --ioengine=nbd --uri="$uri" --rw=randwrite \
	--bsrange=4k-64k --size=32M --iodepth=16 --verify=crc32c --verify_state_save=0 \
	--verify_fatal=1 \
	--verify_dump=0 --randrepeat=0 --eta=never) >"$tmp/fio.log"
grep -q 'err= 0' "$tmp/fio.log"

echo "== the server is killed under load"
load_until "$tmp/stop" "$uri" &
load=$!
for turn in 1 2 3; do
	wait_for_writes "writes before kill $turn" "$tmp/disk"
	quickly kill_process "$server_pid"
	serve
done
wait_for_writes "writes after the last restart" "$tmp/disk"

echo "== the client is killed under load"
kill_process "$nbdkit_pid"
wait "$load" || true	# it has lost its server
wait_until "the end of its windows" grep -q 'keys: [0-9]* given, [0-9]* taken away' "$server_log"
quickly stop_server "$server_pid"
grep 'keys: ' "$server_log"

echo "== writes at a wrong time or place"
ATTACK_SERVER=rdma://$ip4:1235 bash "$top_srcdir/tests/test-attack.sh"
./tests/hostile/test-hsrv "rdma://$ip4:1300"
