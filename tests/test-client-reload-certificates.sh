#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl reload of certificates at the plugin and at rtrs-nbd, as test-client-reload.sh has it of keys.
# Which program is meant: test-rtrsctl-which.sh; one that has nothing to read: unit/test-clt-reload.c.
. ./tests/functions.sh
. "$top_srcdir/tests/client-reload.sh"

authority "$tmp/pki"
authority "$tmp/pki2"
server_pair() {
	certificate "$1" server 'cn = "disks"' 'dns_name = "disks"' 'ip_address = 127.0.0.1' \
		'ip_address = 127.0.0.2' tls_www_server signing_key
}
server_pair "$tmp/pki"
server_pair "$tmp/pki2"
certificate "$tmp/pki" one 'cn = "gw"' tls_www_client signing_key
certificate "$tmp/pki" two 'cn = "gw"' tls_www_client signing_key
# pair NAME: the client's
pair() {
	cp "$tmp/pki/$1-cert.pem" "$tmp/own/client-cert.pem"
	cp "$tmp/pki/$1-key.pem" "$tmp/own/client-key.pem"
}
mkdir "$tmp/own"
for front in nbdkit gateway; do
	live_files
	cp "$tmp/pki/ca-cert.pem" "$tmp/own/"
	pair one
	server --tls=require --tls-certificates="$tmp/live" --tls-verify-peer
	client $front tls=require tls-certificates="$tmp/own"
	load disk "$uri"
	says 'tls-certificates: nothing has changed'
	must_fail "${ctl[@]}" --force reload 2>"$tmp/why"
	grep "has no command 'reload force'" "$tmp/why"

	cp "$tmp/pki/two-key.pem" "$tmp/own/client-key.pem"
	refused "tls-certificates: $tmp/own/client-cert.pem, $tmp/own/client-key.pem: "
	mv "$tmp/own" "$tmp/away"
	refused "tls-certificates: $tmp/own/ca-cert.pem: No such file"
	mv "$tmp/away" "$tmp/own"
	path_again 1

	# Another certificate, and the first one is revoked.
	cp "$tmp/pki/ca-cert.pem" "$tmp/own/"
	pair two
	says 'tls-certificates: read again'
	revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 100' one
	server_reload | grep -x -F 'tls-certificates: read again (2 paths ended)'
	wait_until "all paths" all_up
	goes_on disk

	# Another authority, for a time beside the first.
	cat "$tmp/pki/ca-cert.pem" "$tmp/pki2/ca-cert.pem" >"$tmp/own/ca-cert.pem"
	says 'tls-certificates: read again'
	cp "$tmp"/pki2/server-*.pem "$tmp/live/"
	server_reload | grep -x -F 'tls-certificates: read again'
	path_again 1
	path_again 2
	# A certificate of the server that the client takes no more.
	revocations "$tmp/pki2" "$tmp/own/ca-crl.pem" 'crl_next_update = 100' server
	says 'tls-certificates: read again'
	goes_on disk
	rm "$tmp/own/ca-crl.pem"
	refused "tls-certificates: $tmp/own/ca-crl.pem is gone: expected a list"
	revocations "$tmp/pki2" "$tmp/own/ca-crl.pem" 'crl_next_update = 100'
	says 'tls-certificates: read again'
	goes_on disk
	load_end disk
	stop_process "$client_pid"
	rm "$tmp/own/ca-crl.pem"
	stop_process "$server_pid"
done
