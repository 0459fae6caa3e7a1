#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS with certificates: the server proves itself by its address or a name, a client proves itself
# if asked, and each that does not is refused with one line.
. ./tests/functions.sh
requires_server
requires certtool --version

bench=$top_builddir/rtrs-bench
umask 077
# authority DIR: a new one.
authority() {
	mkdir "$1"
	printf 'cn = "test"\nca\ncert_signing_key\n' >"$1/ca.cfg"
	certtool --generate-privkey --key-type=ecdsa --outfile "$1/ca-key.pem"
	certtool --generate-self-signed --load-privkey "$1/ca-key.pem" --template "$1/ca.cfg" \
		--outfile "$1/ca-cert.pem"
}
# certificate DIR NAME LINE...: NAME-cert.pem and NAME-key.pem of the authority in DIR.
certificate() {
	local dir=$1 name=$2
	shift 2
	printf '%s\n' "$@" >"$dir/$name.cfg"
	certtool --generate-privkey --key-type=ecdsa --outfile "$dir/$name-key.pem"
	certtool --generate-certificate --load-privkey "$dir/$name-key.pem" \
		--load-ca-certificate "$dir/ca-cert.pem" --load-ca-privkey "$dir/ca-key.pem" \
		--template "$dir/$name.cfg" --outfile "$dir/$name-cert.pem"
}
server_words=('cn = "disks"' 'ip_address = 127.0.0.1' 'dns_name = "disks.test"' tls_www_server
	signing_key)
{
	authority "$tmp/pki"
	certificate "$tmp/pki" server "${server_words[@]}"
	mkdir "$tmp/stranger"
	cp "$tmp/pki/ca-cert.pem" "$tmp/stranger/"
	cp -r "$tmp/pki" "$tmp/client"
	certificate "$tmp/client" client 'cn = "gw"' tls_www_client signing_key
	authority "$tmp/other"
	certificate "$tmp/other" client 'cn = "gw"' tls_www_client signing_key
	cp -r "$tmp/other" "$tmp/mixed"
	cp "$tmp/pki/ca-cert.pem" "$tmp/mixed/"
} >"$tmp/certtool.log" 2>&1
random_file "$tmp/disk" $((1 << 20))

# io OPTION...: succeeds.
io() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=10 --tls=require "$@" \
		"127.0.0.1:$server_port" disk
}
# refused REGEX OPTION...
refused() {
	local regex=$1
	shift
	expect_failure 1 "$regex" "$bench" --number-ios=1 --tls=require "$@" \
		"127.0.0.1:$server_port" disk
}

# ---- the server proves itself ----

start_server --tls=require --tls-certificates="$tmp/pki" --control none "disk=$tmp/disk"
io --tls-certificates="$tmp/stranger"
io --tls-certificates="$tmp/stranger" --tls-hostname=disks.test
refused 'TLS: Error in the certificate verification' --tls-certificates="$tmp/stranger" \
	--tls-hostname=elsewhere.test
refused 'TLS: Error in the certificate verification' --tls-certificates="$tmp/other"
io --tls-certificates="$tmp/other" --tls-verify-peer=false
stop_process "$server_pid"

# ---- and the client, if asked ----

start_server --tls=require --tls-certificates="$tmp/pki" --tls-verify-peer --control none \
	"disk=$tmp/disk"
io --tls-certificates="$tmp/client"
refused 'TLS' --tls-certificates="$tmp/stranger"
refused 'TLS' --tls-certificates="$tmp/mixed"
wait_line "$server_log" 'closed during the handshake: TLS: .*certificate'
stop_process "$server_pid"

# ---- files ----

chmod 644 "$tmp/pki/server-key.pem"
expect_failure 1 'server-key.pem: expected mode 0600, not 0644' "$RTRS_SERVER" \
	--listen tcp://127.0.0.1:0 --control none --tls-certificates="$tmp/pki" "disk=$tmp/disk"
rm "$tmp/pki/server-key.pem"
expect_failure 1 'server-key.pem: No such file' "$RTRS_SERVER" \
	--listen tcp://127.0.0.1:0 --control none --tls-certificates="$tmp/pki" "disk=$tmp/disk"
expect_failure 1 'ca-cert.pem: ' "$RTRS_SERVER" \
	--listen tcp://127.0.0.1:0 --control none --tls-certificates="$tmp" "disk=$tmp/disk"
