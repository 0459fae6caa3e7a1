#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A reload of rtrs-nbd takes trust from NBD clients: those whose key has left the file or has other
# bytes, or whose certificate is revoked, are ended, each with a line; the IO of all others, and of
# clients in clear, goes on without an error.  A handshake that is under way meanwhile does not get
# in with what was removed.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
. "$top_srcdir/tests/reload.sh"
requires_server; requires_gateway

key() { "$top_builddir/rtrs-psk" "$1" >"$tmp/$2.psk"; }
key alice alice
key bob bob
key bob bob-new
key carol/a carol-a
key carol/b carol-b
# keys NAME...: the gateway's file has these
keys() {
	local files=("${@/#/$tmp/}")
	cat "${files[@]/%/.psk}" >"$tmp/keys.new"
	mv "$tmp/keys.new" "$tmp/keys"
}
truncate -s 64M "$tmp/one" "$tmp/two" "$tmp/three"
start_server --control none "one=$tmp/one" "two=$tmp/two" "three=$tmp/three"
session=("server=127.0.0.1:$server_port" connections=3 control="$tmp/client.ctl")

# hold NAME URI [N]: N connections that are open until the gateway ends them
hold() {
	timeout $((8 * TIMEOUT_S)) nbdsh -c - <<-END &
	hs = [nbd.NBD() for _ in range(${3:-1})]
	for g in hs:
	    g.set_uri_allow_local_file(True)
	    g.connect_uri("$2")
	    g.pread(512, 0)
	open("$tmp/$1.held", "w").close()
	for g in hs:
	    while not (g.aio_is_closed() or g.aio_is_dead()):
	        try:
	            g.poll(1000)
	        except nbd.Error:
	            pass
	END
	held=$!
	wait_until "the clients of $1" test -e "$tmp/$1.held"
	rm "$tmp/$1.held"
}
size() {
	timeout "$TIMEOUT_S" nbdinfo --size "$1"
}
# ends REGEX: how often the gateway's log has an end for this reason
ends() { grep -c -E "client [0-9]+( of [0-9.:]+)?: connection ends: $1" "$gateway_log" || true; }
# listed PYTHON: of ids, the sorted identities of the clients
listed() {
	"${ctl[@]}" --json clients | with_json "
ids = sorted(c['identity'] for c in a['clients'])
print(ids)
assert $1"
}

# ---- keys ----

keys alice bob carol-a carol-b
# The name of the file is a relative one.
GATEWAY_PREFIX="env -C $tmp" start_gateway -v --threads=3 --tls=on --tls-psk=keys \
	"${session[@]}"
# uri USER FILE EXPORT
uri() { echo "nbds+unix://$1@/$3?socket=$sock&tls-psk-file=$tmp/$2.psk"; }
load carol "$(uri carol%2Fb carol-b one)"
load clear "nbd+unix:///two?socket=$sock"
load bob "$(uri bob bob three)"
hold alice "$(uri alice alice one)" 3
alice=$held
hold carol-a "$(uri carol%2Fa carol-a one)"
carol_a=$held

# What is not good changes nothing, and nothing new ends nobody.
keys alice bob
chmod 640 "$tmp/keys"
refused "--tls-psk=$tmp/keys: expected mode 0600, not 0640"
keys alice bob carol-a carol-b
says "nbd tls-psk: nothing has changed"
goes_on carol clear bob
listed "ids == ['', 'psk:alice', 'psk:alice', 'psk:alice', 'psk:bob', 'psk:carol', 'psk:carol']"
[ "$(ends '')" -eq 0 ]

# A key leaves: all its clients end, on each loop, and none of another key of any identity.
keys bob carol-b
says '-nbd key alice' '-nbd key carol/a'
expect_exit "$alice" 0
expect_exit "$carol_a" 0
wait_until "their ends" listed "ids == ['', 'psk:bob', 'psk:carol']"
[ "$(ends 'the key of psk:alice was removed$')" -eq 3 ]
[ "$(ends 'the key of psk:carol was removed$')" -eq 1 ]
goes_on carol clear bob
expect_failure 1 gnutls_handshake nbdinfo --size "$(uri alice alice one)"

# Other bytes under the same name are another key; by SIGHUP.
hold bob-holds "$(uri bob bob one)" 2
bob=$held
keys bob-new carol-b
kill -HUP "$gateway_pid"
expect_exit "$bob" 0
wait "${loads[bob]}" && fail "the load under a key that is gone has not ended"
wait_until "their ends" listed "ids == ['', 'psk:carol']"
[ "$(ends 'the key of psk:bob was removed$')" -eq 3 ]
wait_line "$gateway_log" 'reload: -nbd key bob$'
wait_line "$gateway_log" 'files of keys and certificates were read again$'
hold bob-again "$(uri bob bob-new one)"
bob=$held
cp "$tmp/keys" "$tmp/good"
: >"$tmp/keys"
kill -HUP "$gateway_pid"
wait_line "$gateway_log" 'rejected, configuration unchanged:$'
wait_line "$gateway_log" "--tls-psk=$tmp/keys: expected a line NAME:KEY"
size "$(uri bob bob-new one)"
cp "$tmp/good" "$tmp/keys"

# ---- a handshake that is under way ----

# A relay between a client and the gateway: it holds back what the client answers to the gateway's
# part of the handshake, which has the key or the certificates by then, until the file OPEN exists.
cat >"$tmp/relay.py" <<'END'
import os, select, socket, sys, time
path, gateway, held, go = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path + ".new")
listener.listen(1)
os.rename(path + ".new", path)
client = listener.accept()[0]
if gateway.startswith("/"):
    server = socket.socket(socket.AF_UNIX)
    server.connect(gateway)
else:
    server = socket.create_connection(("127.0.0.1", int(gateway)))
hello = answered = False
while True:
    for s in select.select([client, server], [], [])[0]:
        data = s.recv(65536)
        if not data:
            sys.exit()
        if s is server:
            answered = answered or (hello and data[0] == 0x16)
        elif answered:
            open(held, "w").close()
            while not os.path.exists(go):
                time.sleep(0.01)
            answered = hello = False
        elif data[0] == 0x16:
            hello = True
        (server if s is client else client).sendall(data)
END
# in_handshake GATEWAY PYTHON: a client that connects through the relay, whose handshake waits
in_handshake() {
	rm -f "$tmp/relay" "$tmp/waits" "$tmp/goes"
	timeout $((2 * TIMEOUT_S)) /usr/bin/python3 "$tmp/relay.py" "$tmp/relay" "$1" "$tmp/waits" \
		"$tmp/goes" &
	relay=$!
	wait_until "the relay" test -S "$tmp/relay"
	timeout $((2 * TIMEOUT_S)) nbdsh -c 'h.set_tls(nbd.TLS_REQUIRE)' -c "$2" \
		-c "h.connect_unix('$tmp/relay')" -c 'h.pread(512, 0)' >"$tmp/shaker" 2>&1 &
	shaker=$!
	wait_until "the handshake" test -e "$tmp/waits"
}
# handshake_ends STATUS
handshake_ends() {
	local status=0
	: >"$tmp/goes"
	wait "$shaker" || status=$?
	[ $status -eq "$1" ] || { cat "$tmp/shaker"; fail "status $status of the client, not $1"; }
	wait "$relay" || fail "the relay failed"
}
by_key() {
	echo "h.set_tls_psk_file('$tmp/$2.psk'); h.set_tls_username('$1'); h.set_export_name('one')"
}
key dora dora
keys bob-new carol-b dora
says '+nbd key dora'
# With a key that stays it ends well, and with one that goes it does not.
in_handshake "$sock" "$(by_key dora dora)"
keys carol-b bob-new dora
says 'nbd tls-psk: nothing has changed'
handshake_ends 0
in_handshake "$sock" "$(by_key dora dora)"
keys bob-new carol-b
says '-nbd key dora'
handshake_ends 1
wait_line "$gateway_log" 'connection ends: the key of psk:dora was removed$'

# ---- hundreds at once ----

key many many
keys bob-new carol-b many
says '+nbd key many'
hold many "$(uri many many one)" 300
keys bob-new carol-b
says '-nbd key many'
expect_exit "$held" 0
wait_until "their ends" listed "ids == ['', 'psk:bob', 'psk:carol']"
n=$(ends 'the key of psk:many was removed$')
[ "$n" -ge 1 ] && [ "$n" -le 20 ] || fail "$n lines about 300 ends"
goes_on carol clear
load_end carol clear
stop_process "$gateway_pid"
wait "$bob" || fail "the client of the new key has failed"

# ---- certificates ----

authority "$tmp/pki"
certificate "$tmp/pki" server 'cn = "gateway"' 'ip_address = 127.0.0.1' tls_www_server signing_key
live_files
client_files erin frank gina
start_gateway_tcp --threads=2 --tls=on --tls-certificates="$tmp/live" --tls-verify-peer \
	"${session[@]}"
# uri NAME EXPORT
uri() { echo "nbds://127.0.0.1:$port/$2?tls-certificates=$tmp/$1"; }
load frank "$(uri frank one)"
load clear "nbd://127.0.0.1:$port/two"
hold erin "$(uri erin three)" 20
erin=$held
says 'nbd tls-certificates: nothing has changed'
listed "ids == [''] + 20 * ['cert:erin'] + ['cert:frank']"
revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 100' erin
chmod 644 "$tmp/live/server-key.pem"
refused "--tls-certificates: $tmp/live/server-key.pem: expected mode 0600, not 0644"
listed "len(ids) == 22"
size "$(uri erin three)"
chmod 600 "$tmp/live/server-key.pem"
says 'nbd tls-certificates: read again'
expect_exit "$erin" 0
wait_until "their ends" listed "ids == ['', 'cert:frank']"
[ "$(ends 'the certificate of cert:erin is no longer accepted$')" -ge 1 ]
[ "$(ends 'the certificate of cert:frank')" -eq 0 ]
goes_on frank clear
# A list that goes away revokes what it revoked; one that is empty does not.
mv "$tmp/live/ca-crl.pem" "$tmp/crl.pem"
refused "--tls-certificates: $tmp/live/ca-crl.pem is gone: expected a list"
must_fail size "$(uri erin three)"
revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 100'
says 'nbd tls-certificates: read again'
size "$(uri erin three)"
mv "$tmp/crl.pem" "$tmp/live/ca-crl.pem"
says 'nbd tls-certificates: read again'

by_certificate="h.set_tls_certificates('$tmp/gina'); h.set_export_name('three')
h.set_tls_verify_peer(False)"
in_handshake "$port" "$by_certificate"
revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 101' erin
says 'nbd tls-certificates: read again'
handshake_ends 0
in_handshake "$port" "$by_certificate"
revocations "$tmp/pki" "$tmp/live/ca-crl.pem" 'crl_next_update = 100' erin gina
says 'nbd tls-certificates: read again'
handshake_ends 1
wait_line "$gateway_log" 'connection ends: the certificate of cert:gina is no longer accepted$'
goes_on frank clear
load_end frank clear
