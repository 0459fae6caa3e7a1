#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS of NBD clients of rtrs-nbd by NBD_OPT_STARTTLS, with keys: libnbd, nbdcopy and QEMU, over TCP
# and a unix socket; who has no key, a wrong one or comes in clear is refused, with one line; and
# large IO over full sockets.  Options that do not go together: test-secrets.sh.
. ./tests/functions.sh
requires_server; requires_gateway
requires nbdinfo --version
requires nbdcopy --version
requires qemu-img --version

umask 077
mkdir "$tmp/qemu"
new_keys "$tmp/server.psk" alice bob
grep ^alice: "$tmp/server.psk" >"$tmp/qemu/keys.psk"
new_keys "$tmp/wrong.psk" alice
new_keys "$tmp/stranger.psk" carol
random_file "$tmp/disk" $((32 << 20))
start_server --listen tcp://127.0.0.1:0 --control none "disk=$tmp/disk"
session=("server=127.0.0.1:$server_port" export=disk control=none)

# uri USER FILE: of the gateway, on its unix socket.
uri() {
	echo "nbds+unix://$1@/?socket=$sock&tls-psk-file=$2"
}
# told REGEX: the gateway's log says it.
told() {
	wait_line "$gateway_log" "client [0-9]+: connection ends: $1"
}

# ---- --tls=require ----

start_gateway -v --tls=require --tls-psk="$tmp/server.psk" "${session[@]}"
nbdinfo "$(uri alice "$tmp/qemu/keys.psk")" >"$tmp/info"
grep -q 'protocol: newstyle-fixed with TLS' "$tmp/info"
# AES-128-GCM comes first, whatever the client would choose.
wait_line "$gateway_log" 'client [0-9]+: TLS1\.3 AES-128-GCM, psk:alice$'
# Pieces of all sizes, many at once.
for size in 4096 262144 33554432; do
	cmp "$tmp/disk" <(timeout $((3 * TIMEOUT_S)) nbdcopy --request-size="$size" \
		"$(uri bob "$tmp/server.psk")" -)
done
random_file "$tmp/new" $((32 << 20))
timeout "$TIMEOUT_S" nbdcopy "$tmp/new" "$(uri bob "$tmp/server.psk")"
cmp "$tmp/new" "$tmp/disk"

tls=(--object "tls-creds-psk,id=t,endpoint=client,dir=$tmp/qemu,username=alice")
disk=driver=nbd,server.type=unix,server.path=$sock
timeout "$TIMEOUT_S" qemu-img convert "${tls[@]}" --image-opts "$disk,tls-creds=t" -O raw \
	"$tmp/copy"
cmp "$tmp/new" "$tmp/copy"

expect_failure 1 'gnutls_handshake' nbdinfo "$(uri alice "$tmp/wrong.psk")"
told "TLS: wrong key of 'alice'$"
expect_failure 1 'gnutls_handshake' nbdinfo "$(uri carol "$tmp/stranger.psk")"
told "TLS: no key has the name 'carol'$"
must_fail nbdinfo "nbd+unix:///?socket=$sock"
must_fail qemu-img info --image-opts "$disk" 2>"$tmp/qemu.err"
grep -q 'TLS' "$tmp/qemu.err"
# A client of RTRS has the same keys, and is no client of NBD.
expect_failure 1 'unix:' "$top_builddir/rtrs-bench" --number-ios=1 --tls=require \
	--tls-psk="$tmp/qemu/keys.psk" "unix:$sock" disk
# The end of the gateway is an end of TLS for a client that is connected: no error, no line.
timeout "$TIMEOUT_S" nbdsh -c "h.set_uri_allow_local_file(True)" \
	-c "h.connect_uri('$(uri alice "$tmp/qemu/keys.psk")')" \
	-c 'import os, signal
os.kill('"$gateway_pid"', signal.SIGTERM)
while not h.aio_is_closed() and not h.aio_is_dead():
	try:
		h.poll(1000)
	except nbd.Error as error:
		assert "closed" in str(error), error'
expect_exit "$gateway_pid" 0
must_fail grep -q 'TLS stream was cut' "$gateway_log"

# ---- an upgrade: another gateway takes the place of this one, and QEMU goes on there ----

upgraded=(-v --tls=require --tls-psk="$tmp/server.psk" "server=127.0.0.1:$server_port" export=disk
	control="$tmp/gateway.ctl")
start_gateway "${upgraded[@]}"
place=$sock
file=file.driver=nbd,file.server.type=unix,file.server.path=$place
random_file "$tmp/image" $((32 << 20))
qemu-img convert -n -W -m 8 -r 4M -f raw "${tls[@]}" --target-image-opts "$tmp/image" \
	"driver=raw,$file,file.tls-creds=t,file.reconnect-delay=$TIMEOUT_S" &
convert=$!
# The gateway has one client, which is past its handshakes.
copies() {
	"$top_builddir/rtrsctl" --socket "$tmp/gateway.ctl" --json clients | with_json '
[client] = a["clients"]
assert client["identity"] == "psk:alice" and client["state"] == "open", client'
}
for _ in 1 2; do
	wait_until "the copy" copies
	stop_process "$gateway_pid"
	must_fail grep 'connection ends' "$gateway_log"
	start_gateway "${upgraded[@]}"
	if process_ended "$convert"; then
		wait "$convert"
		fail "the copy ended before its gateway did"
	fi
	mv "$sock" "$place"
done
expect_exit "$convert" 0
cmp "$tmp/image" "$tmp/disk"
stop_process "$gateway_pid"

# ---- --tls=on, and over TCP ----

start_gateway_tcp -v --tls=on --tls-psk="$tmp/server.psk" "${session[@]}"
nbdinfo --size "nbd://127.0.0.1:$port" | grep -x 33554432
nbdinfo "nbds://alice@127.0.0.1:$port?tls-psk-file=$tmp/server.psk" | grep 'with TLS'
stop_process "$gateway_pid"

# ---- the URI of --run ----

# shellcheck disable=SC2016 # the command's
for mode in --tls=require --tls-psk="$tmp/server.psk"; do
	"$RTRS_NBD" -U - "$mode" --tls-psk="$tmp/server.psk" "${session[@]}" \
		--run 'nbdinfo "$uri"' >"$tmp/info"
	grep -q 'with TLS' "$tmp/info"
done

# ---- the session's TLS is another one ----

stop_process "$server_pid"
start_server --tls=require --tls-psk="$tmp/server.psk" --log-level=debug --control none \
	"disk=$tmp/disk"
start_gateway -v --tls=require --tls-psk="$tmp/stranger.psk" "server=127.0.0.1:$server_port" \
	export=disk control=none tls=require tls-psk="$tmp/qemu/keys.psk"
nbdinfo "$(uri carol "$tmp/stranger.psk")" | grep 'with TLS'
expect_failure 1 'gnutls_handshake' nbdinfo "$(uri alice "$tmp/qemu/keys.psk")"
told "TLS: no key has the name 'alice'$"
