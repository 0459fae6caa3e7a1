#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a reload of a client does with its secrets, at the plugin and at rtrs-nbd, with IO over two
# paths that must not fail: keys and certificates are changed for others without a pause, files with
# mistakes change nothing, and 200 reloads leave nothing behind.  Which program is meant:
# test-rtrsctl-which.sh; one that has nothing to read: unit/test-clt-reload.c.
. ./tests/functions.sh
. "$top_srcdir/tests/secrets.sh"
. "$top_srcdir/tests/reload.sh"

people
authority "$tmp/other"
certificate "$tmp/other" server "${server_words[@]}"
truncate -s 64M "$tmp/disk"
server_reload() {
	"$top_builddir/rtrsctl" --socket "$tmp/server.ctl" reload
}
all_up() {
	# A file of keys with a mistake is a warning.
	{ "${ctl[@]}" check || true; } | grep -q ', 2 of 2 paths up'
}
# path_again N: path N of the client is lost and comes back
path_again() {
	local name ups
	name=$("${ctl[@]}" list | sed -n 's/^ *path //p' | sed -n "${1}p")
	ups=$(reconnects "$name")
	"${ctl[@]}" path reconnect "$name"
	wait_until "path $name again" came_back "$name" "$ups"
	wait_until "all paths" all_up
}
reconnects() {
	"${ctl[@]}" --json stats | with_json '
[s] = a["sessions"]
print(*[p["reconnects"] for p in s["paths"] if p["name"] == sys.argv[1]])' "$1"
}
came_back() {
	[ "$(reconnects "$1")" -gt "$2" ]
}
# start_client KEY=VALUE...: $front with two paths
start_client() {
	"start_$front" "server=$first" "path=$second" export=disk control="$tmp/client.ctl" "$@"
	client_pid=$!
	wait_until "all paths" all_up
}
# serve OPTION...: with two addresses; the ones of before, if there are
serve() {
	start_server --listen "tcp://${first-127.0.0.1:0}" --listen "tcp://${second-127.0.0.2:0}" \
		--control "$tmp/server.ctl" --log-level=debug "$@" "disk=$tmp/disk"
	first=127.0.0.1:$server_port
	second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
}
serve_both() {
	serve --tls=require --tls-psk="$tmp/keys" --auth=require --auth-psk="$tmp/keys"
}

# own AUTH TLS: the files of the client have these keys
own() {
	cp "$tmp/$1.psk" "$tmp/own-auth"
	cp "$tmp/$2.psk" "$tmp/own-tls"
}
from_to() {
	says "-auth key $1" "+auth key $2" "-key $1" "+key $2"
}
same_auth='auth-psk: nothing has changed' same_tls='tls-psk: nothing has changed'

keys_of_a_client() {
	new_keys "$tmp/a.psk" gw/a
	new_keys "$tmp/b.psk" gw/b
	cat "$tmp/a.psk" "$tmp/b.psk" >"$tmp/both.psk"
	: >"$tmp/none.psk"
	cp "$tmp/both.psk" "$tmp/keys"
	own a a
	serve_both
	start_client tls=require tls-psk="$tmp/own-tls" auth-psk="$tmp/own-auth"
	load disk "$uri"
	says "$same_auth" "$same_tls"

	# A mistake in one file changes nothing, also not by the other one.
	own both b
	refused "auth-psk=$tmp/own-auth: has 2 keys: expected auth-username=NAME"
	own both none
	refused "auth-psk=$tmp/own-auth: has 2 keys" \
		"tls-psk=$tmp/own-tls: expected a line NAME:KEY"
	all_up
	path_again 2
	goes_on disk
	must_fail grep 'authenticated by the key gw/b' "$server_log"

	own b b
	from_to gw/a gw/b
	says "$same_auth" "$same_tls"
	all_up
	# Each path comes back, although the session was made with the other key.
	path_again 1
	path_again 2
	goes_on disk
	must_fail grep 'made with another key' "$server_log"

	cp "$tmp/b.psk" "$tmp/keys"
	server_reload | grep -x -E -- '-auth key gw/a \(2 paths ended\)|-key gw/a \(2 paths ended\)'
	goes_on disk
	wait_until "all paths" all_up
	grep -q 'authenticated by the key gw/b' "$server_log"
	path_again 1
	goes_on disk

	# While the server is away, the key of its next life.
	own a a
	stop_process "$server_pid"
	from_to gw/b gw/a
	cp "$tmp/a.psk" "$tmp/keys"
	serve_both
	wait_until "all paths" all_up
	goes_on disk
	must_fail grep 'no key has the name' "$server_log"

	# While paths come back to a server that says nothing.
	stop_all_threads "$server_pid"
	"${ctl[@]}" list | sed -n 's/^ *path //p' >"$tmp/paths"
	while IFS= read -r path; do
		"${ctl[@]}" path reconnect "$path"
	done <"$tmp/paths"
	own b a
	says '-auth key gw/a' '+auth key gw/b' "$same_tls"
	own a a
	says '-auth key gw/b' '+auth key gw/a' "$same_tls"
	kill -CONT "$server_pid"
	wait_until "all paths" all_up
	goes_on disk
	many_reloads
	load_end disk
	stop_process "$client_pid"

	# The key of a name stays the one of this name.
	cp "$tmp/both.psk" "$tmp/keys"
	server_reload
	own both both
	start_client tls=require tls-psk="$tmp/own-tls" tls-username=gw/a \
		auth-psk="$tmp/own-tls" auth-username=gw/a
	own both b
	refused "auth-username=gw/a: no key in $tmp/own-tls has this name" \
		"tls-username=gw/a: no key in $tmp/own-tls has this name"
	path_again 1
	stop_process "$client_pid"
	stop_process "$server_pid"
}

# Nothing is left of them.
many_reloads() {
	local fds maps kb secret_kb
	many 20
	fds=$(descriptors) maps=$(mappings) kb=$(resident) secret_kb=$(secrets)
	many 200
	goes_on disk
	echo "descriptors $fds, mappings $maps, $kb kB, $secret_kb kB of secrets;" \
		"now $(descriptors), $(mappings), $(resident) kB, $(secrets) kB"
	fds_as_before() { [ "$(descriptors)" -le "$fds" ]; }
	secrets_as_before() { [ "$(secrets)" -le "$secret_kb" ]; }
	wait_until "descriptors as before" fds_as_before
	if [ "$SANITIZERS${VALGRIND_TESTS-}" = no ]; then
		[ "$secret_kb" -gt 0 ]
		wait_until "no more keys than before" secrets_as_before
		[ "$(mappings)" -lt $((maps + 40)) ] || fail "mappings are left"
		[ "$(resident)" -lt $((kb + 4096)) ] || fail "memory is left"
	fi
	all_up
}
many() {
	local i names=(b a)
	for ((i = 0; i < $1; i++)); do
		own "${names[i % 2]}" "${names[i % 2]}"
		"${ctl[@]}" reload >"$tmp/said"
		[ "$(wc -l <"$tmp/said")" -eq 4 ] || { cat "$tmp/said"; fail "no other key"; }
	done
}
descriptors() { find "/proc/$client_pid/fd" -mindepth 1 | wc -l; }
mappings() { wc -l <"/proc/$client_pid/maps"; }
resident() { awk '/^VmRSS:/ { print $2 }' "/proc/$client_pid/status"; }
# kB of memory that no core file has, as that of keys.
secrets() {
	awk '/^Size:/ { kb = $2 }
		/^VmFlags:.* dd( |$)/ { sum += kb }
		END { print sum + 0 }' "/proc/$client_pid/smaps"
}

# pair NAME: the client's
pair() {
	cp "$tmp/pki/$1-cert.pem" "$tmp/own/client-cert.pem"
	cp "$tmp/pki/$1-key.pem" "$tmp/own/client-key.pem"
}
certificates_of_a_client() {
	for name in one two; do
		certificate "$tmp/pki" $name 'cn = "gw"' tls_www_client signing_key
	done
	mkdir -p "$tmp/own"
	live_files
	cp "$tmp/pki/ca-cert.pem" "$tmp/own/"
	pair one
	serve --tls=require --tls-certificates="$tmp/live" --tls-verify-peer
	start_client tls=require tls-certificates="$tmp/own"
	load disk "$uri"
	says "$same"
	must_fail "${ctl[@]}" --force reload 2>"$tmp/why"
	grep "has no command 'reload force'" "$tmp/why"

	cp "$tmp/pki/two-key.pem" "$tmp/own/client-key.pem"
	refused "tls-certificates: $tmp/own/client-cert.pem, $tmp/own/client-key.pem: "
	mv "$tmp/own" "$tmp/away"
	refused "tls-certificates: $tmp/own/ca-cert.pem: No such file"
	mv "$tmp/away" "$tmp/own"
	path_again 1

	# Another certificate, and the first one is revoked.
	pair two
	says "$read_again"
	revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 100' one
	server_reload | grep -x -F "$read_again (2 paths ended)"
	wait_until "all paths" all_up
	goes_on disk

	# Another authority, for a time beside the first.
	cat "$tmp/pki/ca-cert.pem" "$tmp/other/ca-cert.pem" >"$tmp/own/ca-cert.pem"
	says "$read_again"
	cp "$tmp"/other/server-*.pem "$tmp/live/"
	server_reload | grep -x -F "$read_again"
	path_again 1
	path_again 2
	# A certificate of the server that the client takes no more.
	revocations "$tmp/other" "$tmp/own/ca-crl.pem" 'crl_next_update = 100' server
	says "$read_again"
	goes_on disk
	rm "$tmp/own/ca-crl.pem"
	refused "tls-certificates: $tmp/own/ca-crl.pem is gone: expected a list"
	revocations "$tmp/other" "$tmp/own/ca-crl.pem" 'crl_next_update = 100'
	says "$read_again"
	goes_on disk
	load_end disk
	stop_process "$client_pid"
	stop_process "$server_pid"
	rm "$tmp/own/ca-crl.pem"
}
same='tls-certificates: nothing has changed' read_again='tls-certificates: read again'

for front in nbdkit gateway; do
	keys_of_a_client
	certificates_of_a_client
done
