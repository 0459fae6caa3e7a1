#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl reload at the plugin and at rtrs-nbd, with IO over two paths that must not fail: keys and
# certificates are changed for others without a pause, files with mistakes change nothing, and 200
# reloads leave nothing behind.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
. "$top_srcdir/tests/reload.sh"
requires_server; requires_plugin; requires_gateway

rtrsctl=$top_builddir/rtrsctl
new_keys "$tmp/a" gw/a
new_keys "$tmp/b" gw/b
cat "$tmp/a" "$tmp/b" >"$tmp/both"
truncate -s 64M "$tmp/disk"

# ---- helpers ----

server_reload() {
	"$rtrsctl" --socket "$tmp/server.ctl" reload
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
	"${ctl[@]}" --json stats | /usr/bin/python3 -c '
import json, sys
[s] = json.load(sys.stdin)["sessions"]
print(*[p["reconnects"] for p in s["paths"] if p["name"] == sys.argv[1]])' "$1"
}
came_back() {
	[ "$(reconnects "$1")" -gt "$2" ]
}

# client FRONT KEY=VALUE...: the plugin or rtrs-nbd with two paths; ctl asks it
client() {
	local front=$1
	shift
	"start_$front" "server=$first" "path=$second" export=disk control="$tmp/client.ctl" "$@"
	case $front in
	nbdkit) client_pid=$nbdkit_pid ;;
	gateway) client_pid=$gateway_pid ;;
	esac
	wait_until "all paths" all_up
}
# server OPTION...: with two addresses; the ones of before, if there are
server() {
	start_server --listen "tcp://${first-127.0.0.1:0}" --listen "tcp://${second-127.0.0.2:0}" \
		--control "$tmp/server.ctl" --log-level=debug "$@" "disk=$tmp/disk"
	first=127.0.0.1:$server_port
	second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
}

# ---- another key, without a pause ----

for front in nbdkit gateway; do
	cp "$tmp/both" "$tmp/keys"
	cp "$tmp/a" "$tmp/own-auth"
	cp "$tmp/a" "$tmp/own-tls"
	server --tls=require --tls-psk="$tmp/keys" --auth=require --auth-psk="$tmp/keys"
	client $front tls=require tls-psk="$tmp/own-tls" auth-psk="$tmp/own-auth"
	load disk "$uri"
	says 'auth-psk: nothing has changed' 'tls-psk: nothing has changed'

	# A mistake in one file changes nothing, also not by the other one.
	cp "$tmp/b" "$tmp/own-tls"
	cp "$tmp/b" "$tmp/own-auth"
	chmod 644 "$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: expected mode 0600, not 0644"
	chmod 600 "$tmp/own-auth"
	: >"$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: expected a line NAME:KEY"
	head -c 40 "$tmp/b" >"$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: line 1: expected a key of 32 to 128 hexadecimal digits"
	cat "$tmp/both" >"$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: has 2 keys: expected auth-username=NAME"
	rm "$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: No such file"
	cp "$tmp/b" "$tmp/own-auth"
	: >"$tmp/own-tls"
	refused "tls-psk=$tmp/own-tls: expected a line NAME:KEY"
	echo nonsense >"$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: line 1: expected NAME:KEY" \
		"tls-psk=$tmp/own-tls: expected a line NAME:KEY"
	all_up
	path_again 2
	goes_on disk
	must_fail grep 'authenticated by the key gw/b' "$server_log"

	cp "$tmp/b" "$tmp/own-auth"
	cp "$tmp/b" "$tmp/own-tls"
	says '-auth key gw/a' '+auth key gw/b' '-key gw/a' '+key gw/b'
	says 'auth-psk: nothing has changed' 'tls-psk: nothing has changed'
	all_up
	# Each path comes back, although the session was made with the other key.
	path_again 1
	path_again 2
	goes_on disk
	must_fail grep 'made with another key' "$server_log"

	cp "$tmp/b" "$tmp/keys"
	server_reload | grep -x -E -- '-auth key gw/a \(2 paths ended\)|-key gw/a \(2 paths ended\)'
	goes_on disk
	wait_until "all paths" all_up
	grep -q 'authenticated by the key gw/b' "$server_log"
	path_again 1
	goes_on disk

	# While the server is away, the key of its next life.
	cp "$tmp/a" "$tmp/own-auth"
	cp "$tmp/a" "$tmp/own-tls"
	stop_process "$server_pid"
	says '-auth key gw/b' '+auth key gw/a' '-key gw/b' '+key gw/a'
	cp "$tmp/a" "$tmp/keys"
	server --tls=require --tls-psk="$tmp/keys" --auth=require --auth-psk="$tmp/keys"
	wait_until "all paths" all_up
	goes_on disk
	must_fail grep 'no key has the name' "$server_log"

	# While paths come back to a server that says nothing.
	stop_all_threads "$server_pid"
	"${ctl[@]}" list | sed -n 's/^ *path //p' >"$tmp/paths"
	while IFS= read -r path; do
		"${ctl[@]}" path reconnect "$path"
	done <"$tmp/paths"
	cp "$tmp/b" "$tmp/own-auth"
	says '-auth key gw/a' '+auth key gw/b' 'tls-psk: nothing has changed'
	cp "$tmp/a" "$tmp/own-auth"
	says '-auth key gw/b' '+auth key gw/a' 'tls-psk: nothing has changed'
	kill -CONT "$server_pid"
	wait_until "all paths" all_up
	goes_on disk

	# Nothing is left of many reloads.
	many() {
		for ((i = 0; i < $1; i++)); do
			cp "$tmp/$((i % 2))" "$tmp/own-auth"
			cp "$tmp/$((i % 2))" "$tmp/own-tls"
			"${ctl[@]}" reload >"$tmp/said"
			[ "$(wc -l <"$tmp/said")" -eq 4 ] ||
				{ cat "$tmp/said"; fail "no other key"; }
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
	cp "$tmp/b" "$tmp/0"
	cp "$tmp/a" "$tmp/1"
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
	load_end disk
	stop_process "$client_pid"

	# The key of a name stays the one of this name.
	cp "$tmp/both" "$tmp/keys"
	server_reload
	cp "$tmp/both" "$tmp/own-tls"
	client $front tls=require tls-psk="$tmp/own-tls" tls-username=gw/a auth-psk="$tmp/own-tls" \
		auth-username=gw/a
	cp "$tmp/b" "$tmp/own-tls"
	refused "auth-username=gw/a: no key in $tmp/own-tls has this name" \
		"tls-username=gw/a: no key in $tmp/own-tls has this name"
	path_again 1
	stop_process "$client_pid"
	stop_process "$server_pid"
done

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
cp "$tmp/a" "$tmp/keys"
cp "$tmp/a" "$tmp/own-auth"
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
