#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Foreign clients write over the TLS of rtrs-nbd and read what they wrote: nbdcopy, qemu-io,
# qemu-img, and qemu-storage-daemon for a client of its own, with keys; fio, up to 512 requests
# deep, with a certificate.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway
requires nbdcopy --version
requires fio --enghelp=nbd
requires qemu-io --version
requires qemu-img --version
requires qemu-storage-daemon --version

mkdir "$tmp/keys"
"$top_builddir/rtrs-psk" alice >"$tmp/keys/keys.psk"
truncate -s 64M "$tmp/disk"
random_file "$tmp/image" $((24 << 20))
truncate -s 64M "$tmp/image"
start_server --control "$tmp/control" "disk=$tmp/disk"
session=("server=127.0.0.1:$server_port" export=disk control=none)

# checked COMMAND...: qemu-io says what went wrong and goes on with status 0.
checked() {
	timeout $((2 * TIMEOUT_S)) "$@" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
	cat "$tmp/out"
	must_fail grep -q -i -E 'fail|error|mismatch' "$tmp/out"
}
writes=(-c 'write -P 1 0 8M' -c 'write -P 2 8191k 3k' -c 'aio_write -P 3 16M 4M'
	-c 'aio_write -P 4 20M 4M' -c aio_flush -c 'write -f -P 5 123 77' -c 'discard 4M 1M'
	-c 'write -z 24M 1M' -c flush)
reads=(-c 'read -P 1 0 123' -c 'read -P 5 123 77' -c 'read -P 1 200 1000' -c 'read -P 1 5M 3071k'
	-c 'read -P 2 8191k 3k' -c 'read -P 3 16M 4M' -c 'read -P 4 20M 4M' -c 'read -P 0 4M 1M'
	-c 'read -P 0 24M 1M')

# ---- keys ----

start_gateway --tls=require --tls-psk="$tmp/keys/keys.psk" "${session[@]}"
uri="nbds+unix://alice@/?socket=$sock&tls-psk-file=$tmp/keys/keys.psk"
for options in '--connections=1 --requests=512 --request-size=65536' '--connections=4'; do
	head -c 64M /dev/urandom >"$tmp/disk"
	# shellcheck disable=SC2086 # words
	timeout $((3 * TIMEOUT_S)) nbdcopy --flush $options "$tmp/image" "$uri"
	cmp "$tmp/image" "$tmp/disk"
	# shellcheck disable=SC2086 # words
	timeout $((3 * TIMEOUT_S)) nbdcopy $options "$uri" "$tmp/copy"
	cmp "$tmp/image" "$tmp/copy"
done

tls=(--object "tls-creds-psk,id=t,endpoint=client,dir=$tmp/keys,username=alice")
disk=driver=nbd,server.type=unix,server.path=$sock,tls-creds=t
checked qemu-io "${tls[@]}" --image-opts "${writes[@]}" "${reads[@]}" "$disk"
checked qemu-io "${tls[@]}" --image-opts "${reads[@]}" "$disk"
timeout $((2 * TIMEOUT_S)) qemu-img convert -n -W -m 16 -f raw "${tls[@]}" \
	--target-image-opts "$tmp/image" "driver=raw,file.${disk//,/,file.}"
cmp "$tmp/image" "$tmp/disk"
timeout $((2 * TIMEOUT_S)) qemu-img compare "${tls[@]}" --image-opts \
	"driver=raw,file.filename=$tmp/image" "driver=raw,file.${disk//,/,file.}"

qemu-storage-daemon --pidfile "$tmp/qsd.pid" "${tls[@]}" \
	--blockdev "$disk,node-name=disk,discard=unmap" \
	--nbd-server addr.type=unix,addr.path="$tmp/qsd.sock" \
	--export type=nbd,id=disk,node-name=disk,name=disk,writable=on >"$tmp/qsd.log" 2>&1 &
daemon=$!
cleanup_fn stop_process $daemon
wait_until "qemu-storage-daemon" nbdkit_ready_or_ended $daemon "$tmp/qsd.pid"
checked qemu-io -f raw "${writes[@]}" "nbd+unix:///disk?socket=$tmp/qsd.sock"
checked qemu-io -f raw "${reads[@]}" "nbd+unix:///disk?socket=$tmp/qsd.sock"
timeout $((3 * TIMEOUT_S)) nbdcopy --flush "$tmp/image" "nbd+unix:///disk?socket=$tmp/qsd.sock"
cmp "$tmp/image" "$tmp/disk"
stop_process $daemon
stop_process "$gateway_pid"

# ---- a certificate: fio lets libnbd take no file of keys, and no authority, from a URI ----

authority "$tmp/pki"
certificate "$tmp/pki" server 'cn = "gateway"' tls_www_server signing_key
start_gateway --tls=require --tls-certificates="$tmp/pki" "${session[@]}"
uri="nbds+unix:///?socket=$sock&tls-verify-peer=false"
# Slow with writes, so that all that fio has in flight wait.
timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control" \
	export set disk iops-write=1000
cd "$tmp" || exit
for depth in 1 64 256 257 512; do
	timeout $((4 * TIMEOUT_S)) fio --ioengine=nbd --uri="$uri" \
		--verify=crc32c --verify_state_save=0 --verify_fatal=1 --verify_dump=0 \
		--randrepeat=0 --name=depth$depth --rw=randwrite --bs=36k --size=60M \
		--iodepth=$depth
done
