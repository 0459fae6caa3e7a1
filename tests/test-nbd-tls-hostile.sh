#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS of NBD clients of rtrs-nbd with certificates, and clients that do what they should not
# (nbd-tls-hostile.py): each has its answer, or loses its connection with one line in the log.
# Others are served meanwhile.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway
requires_plain_build
requires /usr/bin/python3 --version
requires qemu-img --version

authority "$tmp/pki"
certificate "$tmp/pki" server 'cn = "gateway"' 'dns_name = "gateway"' tls_www_server signing_key
certificate "$tmp/pki" client 'cn = "vm1"' tls_www_client signing_key
mkdir "$tmp/stranger"
cp "$tmp/pki/ca-cert.pem" "$tmp/stranger/"

head -c 8M /dev/zero >"$tmp/disk"
start_server --control none "disk=$tmp/disk"
session=("server=127.0.0.1:$server_port" export=disk control=none)

# info DIR: by QEMU, with the certificates of DIR.
info() {
	timeout "$TIMEOUT_S" qemu-img info --object \
		"tls-creds-x509,id=t,endpoint=client,dir=$1,verify-peer=on" --image-opts \
		"driver=nbd,server.type=unix,server.path=$sock,tls-creds=t,tls-hostname=gateway"
}
# hostile CASE...
hostile() {
	TIMEOUT_S=$TIMEOUT_S timeout $((6 * TIMEOUT_S)) /usr/bin/python3 \
		"$top_srcdir/tests/nbd-tls-hostile.py" "$sock" "$tmp/pki/ca-cert.pem" "$@"
}
ends='client [0-9]+: connection ends:'
# What is answered in clear, and forgotten behind STARTTLS: unit/test-nbd-opt.c.
start_gateway -v --tls=require --tls-certificates="$tmp/pki" "${session[@]}"
hostile injected clear_for_a_hello cut spliced one_byte_at_a_time
info "$tmp/stranger"
cat "$gateway_log"
wait_line "$gateway_log" "$ends bytes in clear follow NBD_OPT_STARTTLS$"
wait_line "$gateway_log" "$ends peer closed: its TLS stream was cut"
[ "$(wc -l <"$gateway_log")" -lt 1500 ] || fail "the log is flooded"
stop_process "$gateway_pid"

# A gateway of its own, whose log has room for the lines.
start_gateway --tls=require --tls-certificates="$tmp/pki" "${session[@]}"
hostile old_version stalled
wait_line "$gateway_log" \
	"$ends TLS: the client offers TLS 1\\.2 at most, and this end accepts only TLS 1\\.3"
wait_line "$gateway_log" "$ends TLS: too many handshakes at once, and a newcomer took its place"
stop_process "$gateway_pid"

start_gateway -v --tls=require --tls-certificates="$tmp/pki" --tls-verify-peer "${session[@]}"
info "$tmp/pki"
wait_line "$gateway_log" 'client [0-9]+: TLS1\.3 AES-128-GCM, cert:vm1$'
must_fail info "$tmp/stranger"
wait_line "$gateway_log" 'client [0-9]+: connection ends: TLS: '
