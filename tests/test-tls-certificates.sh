#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS with certificates: the server proves itself by its address or a name, a client proves itself
# if asked, and each that does not is refused with one line; a reload takes other files, and ends
# the paths of certificates that these do not accept.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway

bench=$top_builddir/rtrs-bench
server_words=('cn = "disks"' 'ip_address = 127.0.0.1' 'dns_name = "disks.test"' tls_www_server
	signing_key)
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
refused "server's certificate is for disks.test.*, and not for 'elsewhere.test': .*tls-hostname=" \
	--tls-certificates="$tmp/stranger" --tls-hostname=elsewhere.test
refused "TLS: the server's certificate is refused: its issuer is not in ca-cert.pem of this end" \
	--tls-certificates="$tmp/other"
io --tls-certificates="$tmp/other" --tls-verify-peer=false
stop_process "$server_pid"

# ---- and the client, if asked ----

start_server --tls=require --tls-certificates="$tmp/pki" --tls-verify-peer --control none \
	"disk=$tmp/disk"
io --tls-certificates="$tmp/client"
refused 'Certificate is required: expected client-cert.pem and client-key.pem in tls-cert' \
	--tls-certificates="$tmp/stranger"
refused 'it refuses the certificate of this end, and its log has the reason' \
	--tls-certificates="$tmp/mixed"
wait_line "$server_log" 'handshake: TLS: the client.s certificate is refused: its issuer is not in'
# Two files that have changed their names.
cp -r "$tmp/client" "$tmp/crossed"
mv "$tmp/crossed/client-key.pem" "$tmp/crossed/a"
mv "$tmp/crossed/client-cert.pem" "$tmp/crossed/client-key.pem"
mv "$tmp/crossed/a" "$tmp/crossed/client-cert.pem"
chmod 600 "$tmp/crossed/client-key.pem"
expect_failure 2 'client-key.pem: expected a certificate in the first file, and its key in the' \
	"$bench" --tls=require --tls-certificates="$tmp/crossed" "127.0.0.1:$server_port" disk
stop_process "$server_pid"

# ---- a certificate is for one end, unless it has no purpose ----

for name in swapped both; do
	cp -r "$tmp/pki" "$tmp/$name-server"
	cp -r "$tmp/pki" "$tmp/$name-client"
done
certificate "$tmp/swapped-server" server 'cn = "gw"' 'ip_address = 127.0.0.1' tls_www_client \
	signing_key
certificate "$tmp/swapped-client" client 'cn = "gw"' tls_www_server signing_key
certificate "$tmp/both-server" server 'cn = "any"' 'ip_address = 127.0.0.1' signing_key
certificate "$tmp/both-client" client 'cn = "any"' signing_key
start_server --tls=require --tls-certificates="$tmp/swapped-server" --control none \
	"disk=$tmp/disk"
refused "TLS: the server's certificate is refused: it is not for a server" \
	--tls-certificates="$tmp/stranger"
stop_process "$server_pid"
start_server --tls=require --tls-certificates="$tmp/both-server" --tls-verify-peer \
	--control none "disk=$tmp/disk"
refused 'it refuses the certificate of this end' --tls-certificates="$tmp/swapped-client"
wait_line "$server_log" 'TLS: the client.s certificate is refused: it is not for a client'
io --tls-certificates="$tmp/both-client"
stop_process "$server_pid"

# ---- rights by the common name, if it was verified ----

for name in spaces comma colon; do
	cp -r "$tmp/pki" "$tmp/$name"
done
certificate "$tmp/spaces" client 'cn = "gw two"' tls_www_client signing_key
certificate "$tmp/comma" client 'cn = "gw,other"' tls_www_client signing_key
certificate "$tmp/colon" client 'cn = "psk:gw"' tls_www_client signing_key
start_server --tls=require --tls-certificates="$tmp/pki" --tls-verify-peer \
	--control "$tmp/control" "disk=$tmp/disk,allow=cert:gw" \
	'other=mem:1M,allow=cert:other,psk:gw'
io --tls-certificates="$tmp/client"
"$top_builddir/rtrsctl" --socket "$tmp/control" explain disk cert:gw@127.0.0.1 >"$tmp/said"
grep -E "^passes +key +--tls-certificates=$tmp/pki: a certificate is judged when it comes" \
	"$tmp/said"
grep -E '^passes +rights +allow = cert:gw names cert:gw$' "$tmp/said"
must_fail "$top_builddir/rtrsctl" --socket "$tmp/control" explain other cert:gw@127.0.0.1 \
	>"$tmp/said"
grep -E '^refuses +rights +allow = cert:other, psk:gw; .*: no rule names cert:gw or' "$tmp/said"
for name in spaces comma colon; do
	refused 'no such export' --tls-certificates="$tmp/$name"
done
expect_failure 1 'other' "$bench" --number-ios=1 --tls=require --tls-certificates="$tmp/client" \
	"127.0.0.1:$server_port" other
wait_line "$server_log" \
	'open of other as .* refused: .*its allow does not contain 127\.0\.0\.1, cert:gw$'
must_fail grep -E 'cert:(gw.|psk)' "$server_log"
stop_process "$server_pid"
# A certificate that nobody verifies gives no name.
start_server --tls=require --tls-certificates="$tmp/pki" --control "$tmp/control" \
	"disk=$tmp/disk,allow=cert:gw"
refused 'no such export' --tls-certificates="$tmp/client"
must_fail "$top_builddir/rtrsctl" --socket "$tmp/control" explain disk cert:gw@127.0.0.1 \
	>"$tmp/said"
grep -E '^refuses +listener .*no certificate of a client is verified there' "$tmp/said"
stop_process "$server_pid"

# ---- a reload ----

# revoke NAME...: these certificates of the authority, and no others
revoke() {
	revocations "$tmp/pki" "$tmp/crl.pem" 'crl_next_update = 100' "$@"
	cp "$tmp/crl.pem" "$tmp/live/ca-crl.pem"
}
client_files gw1 gw2
live_files
start_server --tls=require --tls-certificates="$tmp/live" --tls-verify-peer \
	--control "$tmp/control" "disk=$tmp/disk,allow=cert:gw1,cert:gw2"
live_pid=$server_pid live_log=$server_log
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
# are NAME...: the identities of the clients
are() {
	"${ctl[@]}" --json clients | with_json '
got = sorted(c["identity"] for c in a["clients"] if c["state"] == "up")
assert got == ["cert:" + name for name in sys.argv[1:]], got' "$@"
}
says() {
	local want=$1 got
	shift
	got=$("${ctl[@]}" "$@")
	[ "$got" = "$want" ] || fail "said '$got', not '$want'"
}
for name in gw1 gw2; do
	start_gateway "server=127.0.0.1:$server_port" export=disk tls=require \
		tls-certificates="$tmp/$name" mode=ro sessname=$name
done
are gw1 gw2
says '' reload
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
mkfifo "$tmp/now" "$tmp/later" "$tmp/half"
connect gw1 "done" "$tmp/now" >"$tmp/now.said" &
now=$!
connect gw1 "done" "$tmp/later" >"$tmp/later.said" &
later=$!
connect gw2 hello "$tmp/half" >"$tmp/half.said" &
half=$!
: >"$tmp/now"
wait $now
[ "$(cat "$tmp/now.said")" = ACCEPT ]
# Both have opened the FIFO: the handshakes are where they are to be.
exec {later_go}>"$tmp/later" {half_go}>"$tmp/half"
# One that is revoked ends, and does not come back; the other one notices nothing.
revoke gw1
says 'tls-certificates: read again (1 path ended)' reload
wait_line "$live_log" 'gw1/.*: path down: the certificate of cert:gw1 is no longer accepted'
must_fail grep -E 'gw2/.*: path down' "$live_log"
wait_line "$live_log" 'closed during the handshake: TLS: .*certificate'
exec {later_go}>&- {half_go}>&-
wait $later $half
[ "$(cat "$tmp/later.said")" = REJECT ]
[ "$(cat "$tmp/half.said")" = ACCEPT ]
wait_line "$live_log" 'connection refused: the certificate of cert:gw1 is no longer accepted'
are gw2
refused 'TLS' --tls-certificates="$tmp/gw1"
io --tls-certificates="$tmp/gw2"
says '' reload
# A file with a mistake is named, and all stays as it was (test-reload-trust.sh: in the list).
cp "$tmp/other/client-key.pem" "$tmp/live/server-key.pem"
expect_failure 1 "--tls-certificates: .*/server-cert.pem, .*/server-key.pem: " "${ctl[@]}" reload
are gw2
refused 'TLS' --tls-certificates="$tmp/gw1"
io --tls-certificates="$tmp/gw2"
# Another certificate of the server is for handshakes that follow, and for a client that is back.
certificate "$tmp/pki" server 'cn = "disks"' 'ip_address = 127.0.0.1' 'dns_name = "new.test"' \
	tls_www_server signing_key
cp "$tmp"/pki/server-*.pem "$tmp/live/"
chmod 600 "$tmp/live/server-key.pem"
refused "certificate is for disks.test.*, and not for .new.test." --tls-certificates="$tmp/gw2" \
	--tls-hostname=new.test
revoke gw2
kill -HUP "$live_pid"
wait_line "$live_log" 'reload: tls-certificates: read again \(1 path ended\)'
wait_line "$live_log" 'gw2/.*: path down: the certificate of cert:gw2 is no longer accepted'
io --tls-certificates="$tmp/gw1" --tls-hostname=new.test
wait_until "gw1 is back by itself" are gw1
# A list that goes away revokes what it revoked.
rm "$tmp/live/ca-crl.pem"
gone="--tls-certificates: $tmp/live/ca-crl.pem is gone: expected a list"
expect_failure 1 "$gone" "${ctl[@]}" reload
refused 'TLS' --tls-certificates="$tmp/gw2"
io --tls-certificates="$tmp/gw1" --tls-hostname=new.test
# Another authority takes all of its clients along.
cp "$tmp/other/ca-cert.pem" "$tmp/live/"
revocations "$tmp/other" "$tmp/live/ca-crl.pem" 'crl_next_update = 100'
says 'tls-certificates: read again (1 path ended)' reload
are
refused 'TLS' --tls-certificates="$tmp/gw1"
stop_process "$gateway_pid"
# A certificate that ends while its path is up ends the path at the next reload, though the files of
# the server are the same.
mkdir "$tmp/brief"
cp "$tmp"/other/ca-*.pem "$tmp/brief/"
end=$(($(date +%s) + TIMEOUT_S / 5))
certificate "$tmp/brief" client 'cn = "gw2"' tls_www_client signing_key \
	"expiration_date = \"$(date --utc --date="@$end" '+%F %T UTC')\""
start_gateway "server=127.0.0.1:$server_port" export=disk tls=require mode=ro sessname=brief \
	tls-certificates="$tmp/brief" tls-verify-peer=false
are gw2
says '' reload
is_over() { [ "$(date +%s)" -gt "$end" ]; }
wait_until "the end of the certificate" is_over
says 'tls-certificates: nothing has changed (1 path ended)' reload
wait_line "$live_log" 'brief/.*: path down: the certificate of cert:gw2 is no longer accepted'
stop_process "$live_pid"

# ---- files ----

expect_failure 2 'ca-cert.pem: ' "$RTRS_SERVER" \
	--listen tcp://127.0.0.1:0 --control none --tls-certificates="$tmp" "disk=$tmp/disk"
