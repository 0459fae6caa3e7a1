#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS with pre-shared keys, both ends: IO over tcp and a unix socket, what each wrong pair of ends
# is told, whose key it is, files that others may read, and that others read the same file.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires nbdcopy --version

bench=$top_builddir/rtrs-bench
umask 077
new_keys "$tmp/server.psk" alice bob
grep ^alice: "$tmp/server.psk" >"$tmp/alice.psk"
new_keys "$tmp/stranger.psk" carol
new_keys "$tmp/wrong.psk" alice
printf 'dora:%064d\n' 0 >"$tmp/zero.psk"
random_file "$tmp/disk" $((8 << 20))

# ---- IO, in front of what the wire carries ----

secret=(--tls=require --tls-psk="$tmp/server.psk")
start_server --listen tcp://127.0.0.1:0 --listen "unix:$tmp/a.sock" "${secret[@]}" \
	--log-level=debug --control none "disk=$tmp/disk"
for server in "127.0.0.1:$server_port" "unix:$tmp/a.sock"; do
	start_nbdkit "server=$server" export=disk control=none tls=require tls-psk="$tmp/alice.psk"
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
	stop_process "$nbdkit_pid"
	start_gateway "server=$server" export=disk control=none \
		tls=on tls-psk="$tmp/server.psk" tls-username=bob
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
	stop_process "$gateway_pid"
done
wait_line "$server_log" 'tcp 127\.0\.0\.1:[0-9]+: TLS 1\.3, AES-128-GCM, key of alice$'
grep -q -E 'tcp 127\.0\.0\.1:[0-9]+: TLS 1\.3, AES-128-GCM, key of bob$' "$server_log"
grep -q -E 'tcp unix:pid=[0-9]+,uid=[0-9]+: TLS 1\.3, AES-128-GCM, key of bob$' "$server_log"
timeout "$TIMEOUT_S" "$bench" --tls=require --tls-psk="$tmp/alice.psk" --rw=randrw --verify \
	--number-ios=20000 --iodepth=32 --bs=64K "127.0.0.1:$server_port" disk

# ---- the wrong pair of ends: one line here, one there ----

# refused CLIENT'S-LINE SERVER'S-LINE OPTION...
refused() {
	local says=$1 told=$2 before
	shift 2
	before=$(wc -l <"$server_log")
	expect_failure 1 "$says" "$bench" --number-ios=1 "$@" "127.0.0.1:$server_port" disk
	wait_until "the server's line" told "$before" "$told"
}
# told LINES REGEX: the log says it behind its first LINES.
told() {
	tail -n +$(($1 + 1)) "$server_log" |
		grep -q -E "warning: tcp 127.0.0.1:[0-9]+: closed during the handshake: $2"
}
refused 'TLS: the peer refused the key of alice: ' "TLS: wrong key of 'alice'" \
	--tls-psk="$tmp/wrong.psk"
refused 'TLS: the peer refused the key of carol: ' "TLS: no key has the name 'carol'" \
	--tls-psk="$tmp/stranger.psk"
# The key of a name that is not known is no key that somebody knows.
refused 'TLS: the peer refused the key of dora: ' "TLS: no key has the name 'dora'" \
	--tls-psk="$tmp/zero.psk"
refused 'the server requires TLS: expected tls=require and tls-psk=FILE' \
	'the peer does not speak TLS, which is required here'
# The server has written its line a moment ago.
expect_failure 1 'the server requires TLS' "$bench" --number-ios=1 --tls=off \
	--tls-psk="$tmp/alice.psk" "127.0.0.1:$server_port" disk
# The alert of a wrong key is that of an unknown name: a stranger does not learn names.
alert() {
	{ "$bench" --number-ios=1 --tls-psk="$1" "127.0.0.1:$server_port" disk 2>&1 || true; } |
		sed -n 's/.*key of [a-z]*: //p'
}
[ -n "$(alert "$tmp/wrong.psk")" ]
[ "$(alert "$tmp/wrong.psk")" = "$(alert "$tmp/stranger.psk")" ]
stop_process "$server_pid"

# A server in plain: a client that requires TLS ends, another one goes on and says so.
start_server --control none "disk=$tmp/disk"
refused 'the server has no TLS \(tls=off there\), which is required here' \
	'the peer wants TLS, which is off here' --tls=require --tls-psk="$tmp/alice.psk"
few_ios() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=10 "$@" "127.0.0.1:$server_port" disk
}
few_ios --tls=on --tls-psk="$tmp/alice.psk" 2>"$tmp/plain.err"
grep -q -F 'the server has no TLS: continuing without (tls=require refuses this)' "$tmp/plain.err"
stop_process "$server_pid"

# A server that leaves the choice to its clients.
start_server --log-level=debug --tls=on --tls-psk="$tmp/server.psk" --control none "disk=$tmp/disk"
few_ios
must_fail grep -q 'TLS 1.3' "$server_log"
few_ios --tls-psk="$tmp/alice.psk"
grep -q 'TLS 1.3, AES-128-GCM, key of alice' "$server_log"
stop_process "$server_pid"

# ---- a server that comes back, under load ----

start_server "${secret[@]}" --control none "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk control=none \
	tls=require tls-psk="$tmp/alice.psk"
port=$server_port
timeout "$TIMEOUT_S" nbdcopy "$uri" "$tmp/copy" &
copy=$!
kill_process "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "${secret[@]}" --control none "disk=$tmp/disk"
wait "$copy"
cmp "$tmp/disk" "$tmp/copy"
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# ---- files, and options that do not go together ----

# bad STATUS TEXT OPTION...: of the server.
bad() {
	local status=$1 text=$2
	shift 2
	expect_failure "$status" "$text" "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none \
		"$@" "disk=$tmp/disk"
}
# Each kind of file: unit/test-psk.c.
chmod 640 "$tmp/alice.psk"
wrong="tls-psk=$tmp/alice.psk: expected mode 0600, not 0640"
bad 2 "--$wrong" --tls-psk="$tmp/alice.psk"
expect_failure 2 "$wrong" "$bench" --tls-psk="$tmp/alice.psk" 127.0.0.1:1 disk
expect_nbdkit_failure "$wrong" server=127.0.0.1:1 tls-psk="$tmp/alice.psk"
chmod 400 "$tmp/alice.psk"
bad 2 '--tls=require: expected tls-psk=FILE or tls-certificates=DIR' --tls=require
bad 2 'expected one of them' --tls-psk="$tmp/alice.psk" --tls-certificates="$tmp"
# Whoever wants peers verified does not serve everybody in clear.
bad 2 '--tls-verify-peer: expected tls-certificates=DIR' --tls-verify-peer
expect_failure 2 '--tls-verify-peer: expected tls-certificates=DIR' "$top_builddir/rtrs-nbd" \
	-U "$tmp/none.sock" --tls-verify-peer server=127.0.0.1:1
bad 2 'expected off, on or require' --tls=yes
expect_failure 2 'has 2 keys: expected tls-username=NAME' \
	"$bench" --tls-psk="$tmp/server.psk" 127.0.0.1:1 disk
expect_failure 2 'no key in .* has this name' \
	"$bench" --tls-psk="$tmp/server.psk" --tls-username=eve 127.0.0.1:1 disk
# RDMA has no TLS, and is not used instead.
# Keys alone mean that nobody gets in without a proof; over RDMA that is a proof in messages.
no_tls='there is no TLS over RDMA: expected (--)?auth=require'
for rdma in rdma://127.0.0.1:0 rdma://127.0.0.1:0,auth=psk; do
	bad 2 "--listen=rdma://127.0.0.1:0 and --tls-psk: $no_tls" --listen "$rdma" \
		--tls-psk="$tmp/server.psk" --auth-psk="$tmp/server.psk" --auth=psk
done
bad 1 'cannot listen on rdma://127\.0\.0\.1:0: [^-]*$' --listen rdma://127.0.0.1:0 \
	--tls-psk="$tmp/server.psk" --auth-psk="$tmp/server.psk"
# --check refuses what the start refuses.
for check in --control=none --check; do
	bad 2 '--listen=rdma://127.0.0.1:0 and --tls=require: there is no TLS over RDMA: expected --tls=on' \
		--tls=require --listen rdma://127.0.0.1:0 --tls-psk="$tmp/server.psk" \
		--auth-psk="$tmp/server.psk" $check
done
expect_nbdkit_failure "tls-psk=.* and server=rdma://127.0.0.1:1: $no_tls" \
	server=rdma://127.0.0.1:1 tls-psk="$tmp/alice.psk"
expect_failure 2 "tls-psk=.* and transport=rdma: $no_tls" \
	"$bench" --transport=rdma --tls-psk="$tmp/alice.psk" 127.0.0.1:1 disk
expect_failure 2 'there is no TLS over RDMA' \
	"$bench" --tls=require --tls-psk="$tmp/alice.psk" rdma://127.0.0.1:1 disk
expect_nbdkit_failure 'tls=require and transport=rdma: there is no TLS over RDMA' \
	server=127.0.0.1:1 transport=rdma tls=require tls-psk="$tmp/alice.psk"
expect_failure 2 "NAME 'a:b': expected a name" "$top_builddir/rtrs-psk" a:b
expect_failure 2 "NAME '': expected a name" "$top_builddir/rtrs-psk" ''
[[ $("$top_builddir/rtrs-psk" x) =~ ^x:[0-9a-f]{64}$ ]]
[ "$("$top_builddir/rtrs-psk" x)" != "$("$top_builddir/rtrs-psk" x)" ]

# ---- the same file for nbdkit, QEMU and psktool ----

if nbdkit --dump-config | grep -q '^tls=yes'; then
	nbdkit -f --exit-with-parent -U "$tmp/other.sock" -P "$tmp/other.pid" "${secret[@]}" \
		memory 1M >"$tmp/other.log" 2>&1 &
	other=$!
	wait_until "nbdkit" test -s "$tmp/other.pid"
	timeout "$TIMEOUT_S" nbdinfo --size \
		"nbds+unix://alice@/?socket=$tmp/other.sock&tls-psk-file=$tmp/server.psk" |
		grep -x 1048576
	if qemu-img --version >/dev/null 2>&1; then
		mkdir "$tmp/qemu"
		cp "$tmp/server.psk" "$tmp/qemu/keys.psk"
		creds=tls-creds-psk,id=tls0,endpoint=client,username=bob,dir=$tmp/qemu
		at=driver=nbd,path=$tmp/other.sock,tls-creds=tls0,tls-hostname=localhost
		timeout "$TIMEOUT_S" qemu-img info --object "$creds" --image-opts "$at" |
			grep -F '1 MiB'
	fi
	kill "$other"
	wait "$other" || true
else
	echo "nbdkit has no TLS: not tried with our file"
fi
if psktool --version >/dev/null 2>&1; then
	psktool -u frank -p "$tmp/frank.psk"
	chmod 600 "$tmp/frank.psk"
	start_server --tls=require --tls-psk="$tmp/frank.psk" --control none "disk=$tmp/disk"
	few_ios --tls=require --tls-psk="$tmp/frank.psk"
	stop_process "$server_pid"
else
	echo "no psktool: not tried with its file"
fi
