#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a reload of the server does with secrets, for each kind of them: they are taken away first,
# whatever becomes of its exports, and come with the exports.  A secret that is gone ends its
# session while an export of the same reload waits for a lock, and stays out when the reload fails,
# as by a mistake of the configuration; that does not wait for another change, as the reload does.
. ./tests/functions.sh
. "$top_srcdir/tests/secrets.sh"
. "$top_srcdir/tests/reload.sh"
requires flock --version

people alice bob carol
authority "$tmp/other"
certificate "$tmp/other" client 'cn = "alice"' tls_www_client signing_key
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
truncate -s 1M "$tmp/disk" "$tmp/locked"

# wants LINE...: the server's file, with these lines behind those of its options
wants() {
	printf '%s\n' '[server]' 'listen = tcp://127.0.0.1:0' 'lock-timeout = 86400' \
		"${server_says[@]}" '[export "disk"]' "path = $tmp/disk" 'mode = ro' "$@" \
		>"$tmp/conf"
}
io() {
	client_is "$1"
	ios 10 --rw=read "${client[@]/#/--}"
}
# stays_out NAME: a new session of the client does not come about
stays_out() {
	client_is "$1"
	not_in "$refusal" --rw=read "${client[@]/#/--}"
}
session() {
	client_is "$1"
	start_gateway "server=127.0.0.1:$server_port" export=disk control=none mode=ro \
		sessname="of-$1" io-timeout=1 "${client[@]}"
	sessions+=("$gateway_pid")
}
# is_waiting: the server carries out a reload, which waits for the lock
is_waiting() {
	[ "$(lock_lines)" -gt "$lock_lines_before" ]
}
lock_lines() {
	grep -c "'$tmp/locked' is locked by" "$server_log" || true
}
# locks LINE...: another program locks the file of an export that the server wants then
locks() {
	lock "$tmp/locked"
	lock_lines_before=$(lock_lines)
	wants '[export "waits"]' "path = $tmp/locked" "$@"
}
changes() { grep -c 'info: reload: ' "$server_log"; }
# is_connected NAME: the session of the client has a path
is_connected() {
	"${ctl[@]}" clients | grep -q "of-$1"
}
# taken NAME: how often the log says that the client's secret has gone with its path
taken() {
	grep -c -E "reload: ${gone//alice/$1}" "$server_log" || true
}
taken_more() {
	[ "$(taken "$1")" -eq $(($2 + 1)) ]
}
# reload_aside FILE: in the background; what it prints
reload_aside() {
	"$top_builddir/rtrsctl" --socket "$tmp/control" reload >"$tmp/$1" 2>&1 &
	reload=$!
}

# goes_first GONE: GONE is what the report says of alice, a regular expression
goes_first() {
	local gone=$1 sessions=() conf=$tmp/conf reload first before reads status=0
	start_server --strict --config "$conf" --control "$tmp/control" --state-dir "$tmp/state"
	session alice
	session bob

	# A mistake of the configuration changes nothing but what the other files take away.
	session carol
	trusts alice bob
	wants 'dirrect = yes'
	wait_until "the session of carol" is_connected carol
	refused "$conf:.*'dirrect' is no option" "$only" "${gone//alice/carol}$"
	wait_line "$server_log" "$conf rejected, only keys and certificates changed:"
	stays_out carol
	io alice
	must_fail grep -E 'of-(alice|bob)/127.*path down' "$server_log"
	stop_process "$gateway_pid"
	unset 'sessions[-1]'

	# A mistake in their own file, or directory, leaves all.
	if [ "$kind" = tls-certificates ]; then
		echo mistake >"$tmp/live/ca-crl.pem"
	else
		echo mistake >"$tmp/server.psk"
	fi
	must_fail "${ctl[@]}" reload
	wait_line "$server_log" "$conf rejected, configuration unchanged:"
	io alice
	trusts bob carol

	# The session ends, and no other one begins, while the reload waits for the lock.
	before=$(taken alice)
	locks '[export "none"]' "path = $tmp/none"
	reload_aside why
	wait_line "$server_log" 'of-alice/127.*path down: the (key|certificate) of [a-z]+:alice '
	wait_until "the line of the reload" taken_more alice "$before"
	stays_out alice
	[ "$new" = at-once ] || stays_out carol
	io bob
	must_fail grep 'of-bob/127.*path down' "$server_log"
	wait_until "the export that waits" is_waiting
	kill -0 "$reload" || fail "the reload does not wait"

	# It fails, and reports both.
	unlock
	wait "$reload" || status=$?
	[ $status -eq 1 ] || fail "the reload ended with status $status"
	lines_are "$tmp/why" "$no_file: No such file or directory: create it, or correct the path$" \
		"$only" "$gone$"
	wait_line "$server_log" "$conf rejected, only keys and certificates changed:"
	wait_line "$server_log" "error: $no_file: No such file"
	taken_more alice "$before"
	[ "$(exports)" = "disk " ]
	stays_out alice
	[ "$new" = at-once ] || stays_out carol
	io bob

	# By SIGHUP, too; what is out already is no difference.
	kill -HUP "$server_pid"
	refused_twice() { [ "$(grep -c "$conf rejected, configuration unchanged" "$server_log")" \
		-eq 2 ]; }
	wait_until "the end of the reload by SIGHUP" refused_twice

	# The next good reload lets in, too.
	wants
	says ${given:+"$given"}
	io carol
	stays_out alice
	trusts alice bob carol
	"${ctl[@]}" reload
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

	# A reload, or SIGHUP, that waits for another change revokes at once, and what that change
	# would give.
	wait_until "the session of alice" is_connected alice
	wait_until "the session of bob" is_connected bob
	reads=$(grep -c "$conf was read again" "$server_log")
	locks
	trusts alice bob carol
	reload_aside first
	first=$reload
	wait_until "the export that waits" is_waiting
	trusts alice carol
	before=$(taken bob)
	kill -HUP "$server_pid"
	wait_until "bob is out by SIGHUP" taken_more bob "$before"
	stays_out bob
	trusts bob
	before=$(taken alice)
	reload_aside second
	wait_line "$server_log" \
		"reload waits: another change is being carried out: export 'waits' .* comes"
	wait_until "alice is out" taken_more alice "$before"
	stays_out alice
	kill -0 "$first"
	kill -0 "$reload" || fail "the later reload does not wait"
	unlock
	wait "$first"
	wait "$reload"
	grep -q -x -E -e "$gone" "$tmp/second" || fail "it said '$(cat "$tmp/second")'"
	must_fail grep 'key carol' "$tmp/first" # no file has it any more
	[ "$(exports)" = "disk waits " ]
	stays_out carol
	stays_out alice
	[ "$(grep -c "$conf was read again" "$server_log")" -eq $((reads + 3)) ] ||
		fail "not three reloads, of which SIGHUP's was the second"
	wants
	"${ctl[@]}" reload

	# A server that stops does not wait for the export.
	locks
	trusts bob
	reload_aside why
	wait_until "the export that waits" is_waiting
	for session in "${sessions[@]}"; do
		stop_process "$session"
	done
	stop_process "$server_pid"
	must_fail wait "$reload"
	unlock
}

# ---- certificates are one whole: the pair of the server, the authority, what is under way ----

# connect NAME hello|done FIFO: a client with this certificate, which waits for the end of FIFO
# behind its hello, or behind its handshake; then the CONNECT of a session.  Prints ACCEPT or
# REJECT.
connect() {
	/usr/bin/python3 - "$server_port" "$tmp/$1" "$2" "$3" <<'END'
import os, socket, ssl, struct, sys
port, keys, stage, fifo = int(sys.argv[1]), *sys.argv[2:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.minimum_version = ssl.TLSVersion.TLSv1_3
context.check_hostname = False
context.load_verify_locations(keys + "/ca-cert.pem")
context.load_cert_chain(keys + "/client-cert.pem", keys + "/client-key.pem")
context.set_alpn_protocols(["rtrs"])
s = socket.create_connection(("127.0.0.1", port))
heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(heard, said)
def wait():
    with open(fifo) as go:
        go.read()
def until(step):
    while True:
        try:
            result = step()
            s.sendall(said.read())
            return result
        except ssl.SSLWantReadError:
            s.sendall(said.read())
            data = s.recv(65536)
            if stage == "hello" and not wait.__dict__.setdefault("over", False):
                wait.over = True
                wait()
            heard.write(data)
until(tls.do_handshake)
if stage == "done":
    wait()
request = struct.pack("<BBHHHHH", 0, 0, 0x1bbd, 0x200, 0, 2, 0)
request += os.urandom(32) + b"\1" + bytes(11)
header = struct.pack("<BBHIIIQ", 16, 0, 0, len(request), 0, 1, 0x0070637453525452)
tls.write(header + request)
print({17: "ACCEPT", 18: "REJECT"}[until(lambda: tls.read(1))[0]])
END
}
# are NAME...: the identities of the clients
are() {
	"${ctl[@]}" --json clients | with_json '
got = sorted(c["identity"] for c in a["clients"] if c["state"] == "up")
assert got == ["cert:" + name for name in sys.argv[1:]], got' "$@"
}
certificates_of_the_server() {
	local alice bob log end gone
	live_files
	start_server --tls=require --tls-certificates="$tmp/live" --tls-verify-peer \
		--control "$tmp/control" "disk=$tmp/disk,allow=cert:alice,cert:bob"
	log=$server_log
	session alice
	alice=$gateway_pid
	session bob
	bob=$gateway_pid
	wait_until "both" are alice bob
	says
	mkfifo "$tmp/now" "$tmp/later" "$tmp/half"
	connect alice "done" "$tmp/now" >"$tmp/now.said" &
	now=$!
	connect alice "done" "$tmp/later" >"$tmp/later.said" &
	later=$!
	connect bob hello "$tmp/half" >"$tmp/half.said" &
	half=$!
	: >"$tmp/now"
	wait $now
	[ "$(cat "$tmp/now.said")" = ACCEPT ]
	# Both have opened the FIFO: the handshakes are where they are to be.
	exec {later_go}>"$tmp/later" {half_go}>"$tmp/half"
	# One that is revoked ends, and does not come back; the other one notices nothing.
	trusts bob
	says 'tls-certificates: read again (1 path ended)'
	wait_line "$log" 'alice/.*: path down: the certificate of cert:alice is no longer accepted'
	must_fail grep -E 'bob/.*: path down' "$log"
	wait_line "$log" 'closed during the handshake: TLS: .*certificate'
	exec {later_go}>&- {half_go}>&-
	wait $later $half
	[ "$(cat "$tmp/later.said")" = REJECT ]
	[ "$(cat "$tmp/half.said")" = ACCEPT ]
	wait_line "$log" 'connection refused: the certificate of cert:alice is no longer accepted'
	are bob
	stays_out alice
	io bob
	says
	# A file with a mistake is named, and all is unchanged.
	cp "$tmp/other/client-key.pem" "$tmp/live/server-key.pem"
	refused "--tls-certificates: .*/server-cert.pem, .*/server-key.pem: "
	are bob
	stays_out alice
	io bob
	# Another certificate of the server is for handshakes that follow.
	certificate "$tmp/pki" server "${server_words[@]}" 'dns_name = "new.test"'
	cp "$tmp"/pki/server-*.pem "$tmp/live/"
	chmod 600 "$tmp/live/server-key.pem"
	client_is bob
	not_in "certificate is for disks.test.*, and not for .new.test." "${client[@]/#/--}" \
		--tls-hostname=new.test
	trusts alice
	kill -HUP "$server_pid"
	wait_line "$log" 'reload: tls-certificates: read again \(1 path ended\)'
	wait_line "$log" 'bob/.*: path down: the certificate of cert:bob is no longer accepted'
	client_is alice
	ios 10 --rw=read "${client[@]/#/--}" --tls-hostname=new.test
	wait_until "alice is back by herself" are alice
	# A list that goes away revokes what it revoked.
	rm "$tmp/live/ca-crl.pem"
	refused "--tls-certificates: $tmp/live/ca-crl.pem is gone: expected a list"
	stays_out bob
	io alice
	# Another authority takes all of its clients along.
	cp "$tmp/other/ca-cert.pem" "$tmp/live/"
	revocations "$tmp/other" "$tmp/live/ca-crl.pem" 'crl_next_update = 100'
	says 'tls-certificates: read again (1 path ended)'
	are
	stays_out alice
	stop_process "$alice"
	stop_process "$bob"
	# A certificate that ends while its path is up ends the path at the next reload, though the
	# files of the server are the same.
	mkdir "$tmp/brief"
	cp "$tmp"/other/ca-*.pem "$tmp/brief/"
	end=$(($(date +%s) + TIMEOUT_S / 5))
	certificate "$tmp/brief" client 'cn = "bob"' tls_www_client signing_key \
		"expiration_date = \"$(date --utc --date="@$end" '+%F %T UTC')\""
	start_gateway "server=127.0.0.1:$server_port" export=disk tls=require mode=ro \
		sessname=brief control=none tls-certificates="$tmp/brief" tls-verify-peer=false
	wait_until "the client" are bob
	says
	is_over() { [ "$(date +%s)" -gt "$end" ]; }
	wait_until "the end of the certificate" is_over
	says 'tls-certificates: nothing has changed (1 path ended)'
	wait_line "$log" 'brief/.*: path down: the certificate of cert:bob is no longer accepted'
	stop_process "$gateway_pid"
	stop_process "$server_pid"
}

no_file="export 'none': .* cannot be opened"
only='only this has changed, configuration otherwise unchanged:$'
for kind in ${KINDS-auth-psk tls-psk tls-certificates}; do
	new=with-exports given=''
	case $kind in
	auth-psk)
		server_says=('auth = require' "auth-psk = $tmp/server.psk")
		refusal='the server has refused the key' given='+auth key carol'
		back='[+]auth key alice' gone='-auth key alice \(1 path ended\)' ;;
	tls-psk)
		server_says=('tls = require' "tls-psk = $tmp/server.psk")
		refusal='the peer refused the key' given='+key carol'
		back='[+]key alice' gone='-key alice \(1 path ended\)' ;;
	tls-certificates)		# one whole
		server_says=('tls = require' "tls-certificates = $tmp/live" 'tls-verify-peer = yes')
		refusal='TLS' new=at-once
		back='tls-certificates: read again'
		gone='tls-certificates: read again \(1 path ended\)' ;;
	esac
	trusts alice bob carol
	wants
	goes_first "$gone"
	[ "$kind" != tls-certificates ] || certificates_of_the_server
done
