#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl reload of certificates at the plugin and at rtrs-nbd, as test-client-reload.sh has it of keys;
# which program is meant, and one that has nothing to read.
. ./tests/functions.sh
. "$top_srcdir/tests/client-reload.sh"

# ---- certificates ----

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

	head -c 60 "$tmp/pki/two-key.pem" >"$tmp/own/client-key.pem"
	refused "tls-certificates: $tmp/own/client-cert.pem, $tmp/own/client-key.pem: "
	cp "$tmp/pki/two-key.pem" "$tmp/own/client-key.pem"
	refused "tls-certificates: $tmp/own/client-cert.pem, $tmp/own/client-key.pem: "
	chmod 644 "$tmp/own/client-key.pem"
	refused "tls-certificates: $tmp/own/client-key.pem: expected mode 0600, not 0644"
	chmod 600 "$tmp/own/client-key.pem"
	: >"$tmp/own/ca-cert.pem"
	refused "tls-certificates: $tmp/own/ca-cert.pem: "
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

# ---- which program ----

# As the units do: by the number of the process.
new_keys "$tmp/keys" gw/a
cp "$tmp/keys" "$tmp/own-auth"
start_server --auth=require --auth-psk="$tmp/keys" "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk mode=ro auth-psk="$tmp/own-auth"
"$rtrsctl" --pid "$gateway_pid" reload | grep -x 'auth-psk: nothing has changed'
"$rtrsctl" --gateway reload | grep -x 'auth-psk: nothing has changed'
must_fail "$rtrsctl" reload 2>"$tmp/why"
grep 'several programs run: choose one' "$tmp/why"
# Both have one name.
[ "$(grep -c '^  rtrsctl --socket=.* reload$' "$tmp/why")" -eq 2 ]
must_fail "$rtrsctl" --gateway --force reload 2>"$tmp/why"
grep "rtrs-nbd has no command 'reload force'" "$tmp/why"
stop_process "$gateway_pid"
stop_process "$server_pid"

# ---- nothing to read ----

server
for front in nbdkit gateway; do
	client $front
	"${ctl[@]}" reload | tee "$tmp/said"
	grep -q 'nothing to reload: this gateway uses no file of config, auth-psk, tls-psk or tls-certificates' \
		"$tmp/said"
	kill -0 "$client_pid"
	stop_process "$client_pid"
done
stop_process "$server_pid"
