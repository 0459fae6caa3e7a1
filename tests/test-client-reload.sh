#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl reload of keys at the plugin and at rtrs-nbd, with IO over two paths that must not fail: keys
# are changed for others without a pause, files with mistakes change nothing, and 200 reloads leave
# nothing behind.
. ./tests/functions.sh
. "$top_srcdir/tests/client-reload.sh"

new_keys "$tmp/a" gw/a
new_keys "$tmp/b" gw/b
cat "$tmp/a" "$tmp/b" >"$tmp/both"

# ---- another key, without a pause ----

for front in nbdkit gateway; do
	cp "$tmp/both" "$tmp/keys"
	cp "$tmp/a" "$tmp/own-auth"
	cp "$tmp/a" "$tmp/own-tls"
	server --tls=require --tls-psk="$tmp/keys" --auth=require --auth-psk="$tmp/keys"
	client $front tls=require tls-psk="$tmp/own-tls" auth-psk="$tmp/own-auth"
	load disk "$uri"
	says 'auth-psk: nothing has changed' 'tls-psk: nothing has changed'

	# A mistake in one file changes nothing, also not by the other one (unit/test-clt-reload.c).
	cp "$tmp/b" "$tmp/own-tls"
	cp "$tmp/both" "$tmp/own-auth"
	refused "auth-psk=$tmp/own-auth: has 2 keys: expected auth-username=NAME"
	: >"$tmp/own-tls"
	refused "auth-psk=$tmp/own-auth: has 2 keys" \
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
