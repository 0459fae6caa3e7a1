#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=240
# guest: kernel=6.1 timeout=240 full
# TLS in the kernel: IO through both programs with kTLS at both ends, at one of them, and without
# the module.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_gateway
requires nbdcopy --version

umask 077
./rtrs-psk conformance >"$tmp/keys"
random_file "$tmp/disk" $((2 << 20))
secret=(--tls=require --tls-psk="$tmp/keys" --log-level=debug --control none)

# io SERVER-KTLS CLIENT-KTLS: start a server; all bytes through a gateway, and random IO that is
# checked.
io() {
	start_server "${secret[@]}" --tls-ktls="$1" "disk=$tmp/disk"
	start_gateway "server=127.0.0.1:$server_port" export=disk control=none tls=require \
		tls-psk="$tmp/keys" tls-ktls="$2"
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
	stop_process "$gateway_pid"
	timeout "$TIMEOUT_S" ./rtrs-bench --tls=require --tls-psk="$tmp/keys" --tls-ktls="$2" \
		--rw=randrw --verify --number-ios=200 --iodepth=8 --bs=32K \
		"127.0.0.1:$server_port" disk
	stop_process "$server_pid"
}

# ---- a kernel without the module ----

[ ! -d /sys/module/tls ] || fail "the module tls is loaded already"
modprobe=$(cat /proc/sys/kernel/modprobe)
restore() {
	echo "$modprobe" >/proc/sys/kernel/modprobe
}
cleanup_fn restore
echo /bin/false >/proc/sys/kernel/modprobe
io auto auto
grep -E 'tcp 127\.0\.0\.1:[0-9]+: no kTLS: the kernel has no module tls' "$server_log"
grep -q -E 'tcp 127\.0\.0\.1:[0-9]+: TLS 1\.3, AES-128-GCM, key of conformance$' "$server_log"
! grep -q kTLS\ 1 "$server_log" || fail "kTLS without the module"
restore

# ---- with it ----

# No client waits for modprobe: the server has the kernel load the ciphers at its start.
modprobe tls
[ ! -d /sys/module/gcm ] || fail "the module gcm is loaded already"
start_server "${secret[@]}" --tls-ktls=auto "disk=$tmp/disk"
for module in gcm chacha20poly1305; do
	[ -d /sys/module/$module ] || fail "the module $module is not loaded"
done
stop_process "$server_pid"
modprobe -a ctr ghash_generic

io auto auto
grep -E 'tcp 127\.0\.0\.1:[0-9]+: kTLS 1\.3, AES-128-GCM, key of conformance$' "$server_log"
! grep -q ': TLS 1' "$server_log" || fail "a connection without kTLS"
io auto off
grep -q ': kTLS 1\.3' "$server_log"
io off auto
! grep -q 'kTLS 1\.3' "$server_log" || fail "kTLS, which is off"
grep -q ': TLS 1\.3' "$server_log"

# ---- what administrators see ----

secret=(--tls=require --tls-psk="$tmp/keys" --control "$tmp/server.ctl")
start_server "${secret[@]}" --tls-ktls=auto "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/gate.ctl" tls=require \
	tls-psk="$tmp/keys" tls-ktls=auto
for asked in "server.ctl clients" "server.ctl show" "gate.ctl show"; do
	# shellcheck disable=SC2086 # words
	set -- $asked
	./rtrsctl --socket "$tmp/$1" "$2" >"$tmp/told"
	grep 'kTLS1\.3 AES-128-GCM' "$tmp/told"
done
