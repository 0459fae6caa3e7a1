#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A reload takes trust away first, whatever becomes of its exports: a key that is gone, or a
# certificate that is revoked, ends its session while an export of the same reload waits for a lock,
# and stays out when the reload fails, as by a mistake of the configuration.  That does not wait for
# another change, as the reload does.  A key that is new comes with the exports alone.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway
requires flock --version

bench=$top_builddir/rtrs-bench
truncate -s 1M "$tmp/disk" "$tmp/locked"
for name in alice bob carol; do new_keys "$tmp/$name.psk" $name; done

# ---- what the three kinds of trust have in common ----

# trusts NAME...: the files trust these clients, of alice, bob and carol
trusts() {
	local files=("${@/#/$tmp/}") revoked=()
	if [ "$kind" = tls-certificates ]; then
		for name in alice bob carol; do
			case " $* " in *" $name "*) ;; *) revoked+=("$name") ;; esac
		done
		revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 100' \
			"${revoked[@]}"
	else
		cat "${files[@]/%/.psk}" >"$tmp/server.psk"
	fi
}
# mistake: nobody can read the files of trusts()
mistake() {
	if [ "$kind" = tls-certificates ]; then
		echo mistake >"$tmp/live/ca-crl.pem"
	else
		echo mistake >"$tmp/server.psk"
	fi
}
# client NAME: options by which a client proves to be NAME
client() {
	case $kind in
	auth-psk) client=(auth-psk="$tmp/$1.psk") ;;
	tls-psk) client=(tls=require tls-psk="$tmp/$1.psk") ;;
	tls-certificates) client=(tls=require tls-certificates="$tmp/$1") ;;
	esac
}
# wants LINE...: the server's file, with these lines behind those of its options
wants() {
	printf '%s\n' '[server]' 'listen = tcp://127.0.0.1:0' 'lock-timeout = 86400' \
		"${server_says[@]}" '[export "disk"]' "path = $tmp/disk" 'mode = ro' "$@" \
		>"$tmp/conf"
}
io() {
	client "$1"
	timeout "$TIMEOUT_S" "$bench" --number-ios=10 --rw=read "${client[@]/#/--}" \
		"127.0.0.1:$server_port" disk
}
# stays_out NAME: a new session of the client does not come about
stays_out() {
	client "$1"
	expect_failure 1 "$refusal" "$bench" --number-ios=1 --rw=read "${client[@]/#/--}" \
		"127.0.0.1:$server_port" disk
}
session() {
	client "$1"
	start_gateway "server=127.0.0.1:$server_port" export=disk control=none mode=ro \
		sessname="of-$1" io-timeout=1 "${client[@]}"
	sessions+=("$gateway_pid")
}
# lock and unlock: what another program does to the file of an export
lock() {
	flock -F "$tmp/locked" sleep 1000 &
	locker=$!
	wait_until "a lock of another program" is_locked
	lock_lines_before=$(lock_lines)
}
is_locked() {
	! flock -n "$tmp/locked" true
}
unlock() {
	[ -n "$locker" ] || return 0
	kill "$locker"
	wait "$locker" || true
	locker=
}
locker=
cleanup_fn unlock
# fails_with FILE LINE...: the lines of a command that has failed, which are regular expressions
fails_with() {
	local file=$1 line n=0
	shift
	for line; do
		n=$((n + 1))
		sed -n "${n}p" "$file" | grep -q -x -E "rtrsctl: $line" ||
			{ cat "$file"; fail "line $n is not '$line'"; }
	done
	[ "$(wc -l <"$file")" -eq $n ] || { cat "$file"; fail "more than $n lines"; }
}
# is_waiting: the server carries out a reload, which waits for the lock
is_waiting() {
	[ "$(lock_lines)" -gt "$lock_lines_before" ]
}
lock_lines() {
	grep -c "'$tmp/locked' is locked by" "$server_log" || true
}
waiting=('[export "waits"]' "path = $tmp/locked")
missing=('[export "none"]' "path = $tmp/none")
changes() { grep -c 'info: reload: ' "$server_log"; }
exports() {
	"${ctl[@]}" list | sed -n 's/^ *export //p' | sort | tr '\n' ' '
}

# is_connected NAME: the session of the client has a path
is_connected() {
	"${ctl[@]}" clients | grep -q "of-$1"
}
# taken NAME: how often the log says that the client's trust has gone with its path
taken() {
	grep -c -E "reload: ${gone//alice/$1}" "$server_log" || true
}
taken_more() {
	[ "$(taken "$1")" -eq $(($2 + 1)) ]
}

# trust_goes_first GONE: GONE is what the report says of alice, a regular expression
trust_goes_first() {
	local gone=$1 server sessions=() conf=$tmp/conf reload later before reads status=0
	start_server --strict --config "$conf" --control "$tmp/control" --state-dir "$tmp/state"
	server=$server_pid
	ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
	session alice
	session bob

	# A mistake of the configuration changes nothing but what the other files take away.
	session carol
	trusts alice bob
	wants 'dirrect = yes'
	wait_until "the session of carol" is_connected carol
	"${ctl[@]}" reload 2>"$tmp/why" || status=$?
	[ $status -eq 1 ] || fail "the reload ended with status $status"
	status=0
	fails_with "$tmp/why" "$conf:.*'dirrect' is no option.*" \
		'only this has changed, configuration otherwise unchanged:' "${gone//alice/carol}"
	wait_line "$server_log" "$conf rejected, only keys and certificates changed:"
	stays_out carol
	io alice
	must_fail grep -E 'of-(alice|bob)/127.*path down' "$server_log"
	stop_process "$gateway_pid"
	unset 'sessions[-1]'

	# A mistake in their own file, or directory, leaves all.
	mistake
	must_fail "${ctl[@]}" reload
	wait_line "$server_log" "$conf rejected, configuration unchanged:"
	io alice
	trusts bob carol

	# The session ends, and no other one begins, while the reload waits for the lock.
	lock
	before=$(taken alice)
	wants "${waiting[@]}" "${missing[@]}"
	"$top_builddir/rtrsctl" --socket "$tmp/control" reload 2>"$tmp/why" &
	reload=$!
	wait_line "$server_log" 'of-alice/127.*path down: the (key|certificate) of [a-z]+:alice '
	wait_until "the line of the reload" taken_more alice "$before"
	stays_out alice
	[ "$new" = at-once ] || stays_out carol
	io bob
	must_fail grep 'of-bob/127.*path down' "$server_log"
	wait_until "the export that waits" is_waiting
	kill -0 "$reload" || fail "the reload does not wait"

	# It fails, and tells both.
	unlock
	wait "$reload" || status=$?
	[ $status -eq 1 ] || fail "the reload ended with status $status"
	fails_with "$tmp/why" "export 'none': .* cannot be opened: No such file or directory: create it, or correct the path" \
		'only this has changed, configuration otherwise unchanged:' "$gone"
	wait_line "$server_log" \
		"$conf rejected, only keys and certificates changed:"
	wait_line "$server_log" "error: export 'none': .* cannot be opened: No such file"
	taken_more alice "$before"
	[ "$(exports)" = "disk " ]
	stays_out alice
	[ "$new" = at-once ] || stays_out carol
	io bob

	# By SIGHUP, too; what is out already is no difference.
	kill -HUP "$server"
	refused_twice() { [ "$(grep -c "$conf rejected, configuration unchanged" "$server_log")" \
		-eq 2 ]; }
	wait_until "the end of the reload by SIGHUP" refused_twice

	# The next good reload gives trust, too.
	wants
	"${ctl[@]}" reload >"$tmp/said"
	[ "$(cat "$tmp/said")" = "$given" ] || fail "said '$(cat "$tmp/said")', not '$given'"
	io carol
	stays_out alice
	trusts alice bob carol
	"${ctl[@]}" reload >"$tmp/said"
	wait_line "$server_log" "reload: $back"
	io alice
	must_fail grep 'of-bob/127.*path down' "$server_log"

	# A reload that succeeds has each line once in the log, too.
	before=$(changes)
	trusts alice bob
	"${ctl[@]}" reload >"$tmp/said"
	[ "$(wc -l <"$tmp/said")" -eq 1 ] || fail "said '$(cat "$tmp/said")'"
	[ "$(changes)" -eq $((before + 1)) ]
	stays_out carol

	# A reload, or SIGHUP, that waits for another change takes trust away at once, and what that
	# change would give.
	wait_until "the session of alice" is_connected alice
	wait_until "the session of bob" is_connected bob
	reads=$(grep -c "$conf was read again" "$server_log")
	lock
	wants "${waiting[@]}"
	trusts alice bob carol
	"$top_builddir/rtrsctl" --socket "$tmp/control" reload >"$tmp/said" 2>&1 &
	reload=$!
	wait_until "the export that waits" is_waiting
	trusts alice carol
	before=$(taken bob)
	kill -HUP "$server"
	wait_until "bob is out by SIGHUP" taken_more bob "$before"
	stays_out bob
	trusts bob
	before=$(taken alice)
	"$top_builddir/rtrsctl" --socket "$tmp/control" reload >"$tmp/later" 2>&1 &
	later=$!
	wait_line "$server_log" \
		"reload waits: another change is being carried out: export 'waits' .* comes"
	wait_until "alice is out" taken_more alice "$before"
	stays_out alice
	kill -0 "$reload"
	kill -0 "$later" || fail "the later reload does not wait"
	unlock
	wait "$reload"
	wait "$later"
	grep -q -x -E -e "$gone" "$tmp/later" || fail "it said '$(cat "$tmp/later")'"
	must_fail grep 'key carol' "$tmp/said" # no file has it any more
	[ "$(exports)" = "disk waits " ]
	stays_out carol
	stays_out alice
	[ "$(grep -c "$conf was read again" "$server_log")" -eq $((reads + 3)) ] ||
		fail "not three reloads, of which SIGHUP's was the second"
	wants
	"${ctl[@]}" reload >"$tmp/said"

	# A server that stops does not wait for the export.
	lock
	wants "${waiting[@]}"
	trusts bob
	"$top_builddir/rtrsctl" --socket "$tmp/control" reload 2>"$tmp/why" &
	reload=$!
	wait_until "the export that waits" is_waiting
	for session in "${sessions[@]}"; do
		stop_process "$session"
	done
	stop_process "$server"
	must_fail wait "$reload"
	unlock
}
# ---- the kinds ----

new=with-exports
kind=auth-psk
server_says=('auth = require' "auth-psk = $tmp/server.psk")
refusal='the server has refused the key' given='+auth key carol' back='[+]auth key alice'
trusts alice bob carol
wants
trust_goes_first '-auth key alice \(1 path ended\)'

kind=tls-psk
server_says=('tls = require' "tls-psk = $tmp/server.psk")
refusal='the peer refused the key' given='+key carol' back='[+]key alice'
trusts alice bob carol
wants
trust_goes_first '-key alice \(1 path ended\)'

# Certificates are one whole.
new=at-once
kind=tls-certificates
authority "$tmp/pki"
certificate "$tmp/pki" server 'cn = "disks"' 'ip_address = 127.0.0.1' tls_www_server signing_key
live_files
client_files alice bob carol
server_says=('tls = require' "tls-certificates = $tmp/live" 'tls-verify-peer = yes')
refusal='TLS' given='' back='tls-certificates: read again'
trusts alice bob carol
wants
trust_goes_first 'tls-certificates: read again \(1 path ended\)'
