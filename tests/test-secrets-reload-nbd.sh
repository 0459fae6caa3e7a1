#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a reload of rtrs-nbd does with the secrets of NBD clients, for each kind of them: those whose
# key has left the file or has other bytes, or whose certificate is revoked, end, each with a line;
# the IO of all others, and of clients in clear, goes on without an error.  A handshake that is
# under way meanwhile does not get in with what was removed.
. ./tests/functions.sh
. "$top_srcdir/tests/secrets.sh"
. "$top_srcdir/tests/reload.sh"

people alice bob carol dora carol/a carol/b
new_keys "$tmp/bob-new.psk" bob
new_keys "$tmp/many.psk" many
truncate -s 64M "$tmp/disk" "$tmp/two" "$tmp/three"
read_again='tls-certificates: read again'

# hold NAME EXPORT [N]: N connections of NAME that are open until the gateway ends them
hold() {
	timeout $((8 * TIMEOUT_S)) nbdsh -c - <<-PY &
	hs = [nbd.NBD() for _ in range(${3:-1})]
	for g in hs:
	    g.set_uri_allow_local_file(True)
	    g.connect_uri("$(nbd_uri "$1" "$2")")
	    g.pread(512, 0)
	open("$tmp/held", "w").close()
	for g in hs:
	    while not (g.aio_is_closed() or g.aio_is_dead()):
	        try:
	            g.poll(1000)
	        except nbd.Error:
	            pass
	PY
	held[$1]=$!
	wait_until "the clients of $1" test -e "$tmp/held"
	rm "$tmp/held"
}
declare -A held
# nbd_uri NAME EXPORT
nbd_uri() {
	case $kind in
	tls-psk) echo "nbds+unix://${1/\//%2F}@/$2?socket=$sock&tls-psk-file=$tmp/${1/\//-}.psk" ;;
	tls-certificates) echo "nbds://127.0.0.1:$port/$2?tls-certificates=$tmp/$1" ;;
	esac
}
size() {
	timeout "$TIMEOUT_S" nbdinfo --size "$(nbd_uri "$1" three)"
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
		-c "h.connect_unix('$tmp/relay')" -c 'h.pread(512, 0)' >"$tmp/handshake" 2>&1 &
	handshake=$!
	wait_until "the handshake" test -e "$tmp/waits"
}
# handshake_ends STATUS
handshake_ends() {
	local status=0
	: >"$tmp/goes"
	wait "$handshake" || status=$?
	[ $status -eq "$1" ] || { cat "$tmp/handshake"; fail "status $status of the client, not $1"; }
	wait "$relay" || fail "the relay failed"
}
by() {
	case $kind in
	tls-psk) echo "h.set_tls_psk_file('$tmp/$1.psk'); h.set_tls_username('$1')" ;;
	tls-certificates) echo "h.set_tls_certificates('$tmp/$1'); h.set_tls_verify_peer(False)" ;;
	esac
	echo "h.set_export_name('disk')"
}

nbd_tls-psk() {
	local n
	# Other bytes under the same name are another key; by SIGHUP.
	hold bob disk 2
	trusts bob-new carol/b
	kill -HUP "$gateway_pid"
	expect_exit "${held[bob]}" 0
	wait "${loads[bob]}" && fail "the load under a key that is gone has not ended"
	wait_until "their ends" listed "ids == ['', 'psk:carol']"
	[ "$(ends 'the key of psk:bob was removed$')" -eq 3 ]
	wait_line "$gateway_log" 'reload: -nbd key bob$'
	wait_line "$gateway_log" 'files of keys and certificates were read again$'
	cp "$tmp/bob-new.psk" "$tmp/bob.psk"
	: >"$tmp/server.psk"
	kill -HUP "$gateway_pid"
	wait_line "$gateway_log" 'rejected, configuration unchanged:$'
	wait_line "$gateway_log" "--tls-psk=$tmp/server.psk: expected a line NAME:KEY"
	size bob

	# Hundreds at once.
	trusts bob carol/b many
	says '+nbd key many'
	hold many disk 300
	load bob "$(nbd_uri bob three)"
	trusts bob carol/b
	says '-nbd key many'
	expect_exit "${held[many]}" 0
	wait_until "their ends" listed "ids == ['', 'psk:bob', 'psk:carol']"
	n=$(ends 'the key of psk:many was removed$')
	[ "$n" -ge 1 ] && [ "$n" -le 20 ] || fail "$n lines about 300 ends"
	goes_on clear bob carol
}
nbd_tls-certificates() {
	# A list that goes away revokes what it revoked; one that is empty does not.
	mv "$tmp/live/ca-crl.pem" "$tmp/crl.pem"
	refused "--tls-certificates: $tmp/live/ca-crl.pem is gone: expected a list"
	must_fail size alice
	trusts "${persons[@]}"
	says "nbd $read_again"
	size alice
	mv "$tmp/crl.pem" "$tmp/live/ca-crl.pem"
	says "nbd $read_again"
	must_fail size alice
}

for kind in ${KINDS-tls-psk tls-certificates}; do
	start_server --control none "disk=$tmp/disk" "two=$tmp/two" "three=$tmp/three"
	session=("server=127.0.0.1:$server_port" connections=3 control="$tmp/client.ctl")
	case $kind in
	tls-psk)
		# Two keys of carol, of which one goes.
		stays=(bob carol/b) goes=(alice carol/a) left="'psk:bob', 'psk:carol'"
		went="'psk:alice', 'psk:carol'"
		trusts "${stays[@]}" "${goes[@]}"
		# The name of the file is a relative one.
		GATEWAY_PREFIX="env -C $tmp" start_gateway -v --threads=3 --tls=on \
			--tls-psk=server.psk "${session[@]}"
		place=$sock clear="nbd+unix:///two?socket=$sock"
		secret=$tmp/server.psk
		wrong_mode="--tls-psk=$secret: expected mode 0600, not 0640"
		gone=('-nbd key alice' '-nbd key carol/a')
		reason='the key of psk:NAME was removed$' ;;
	tls-certificates)
		stays=(bob carol dora) goes=(alice) left="'cert:bob', 'cert:carol'"
		went="'cert:alice'"
		live_files
		start_gateway_tcp -v --threads=3 --tls=on --tls-certificates="$tmp/live" \
			--tls-verify-peer "${session[@]}"
		place=$port clear=nbd://127.0.0.1:$port/two
		secret=$tmp/live/server-key.pem
		wrong_mode="--tls-certificates: $secret: expected mode 0600, not 0640"
		gone=("nbd $read_again")
		reason='the certificate of cert:NAME is no longer accepted$' ;;
	esac
	load clear "$clear"
	load bob "$(nbd_uri bob three)"
	load carol "$(nbd_uri "${stays[1]}" disk)"
	for name in "${goes[@]}"; do
		hold "$name" disk 3
	done
	# What is not good changes nothing, and nothing new ends nobody.
	says "nbd $kind: nothing has changed"
	listed "ids == sorted(['', $left] + 3 * [$went])"
	trusts "${stays[@]}"
	chmod 640 "$secret"
	refused "$wrong_mode"
	goes_on clear bob carol
	size alice
	[ "$(ends '')" -eq 0 ]

	# A secret leaves: all its clients end, on each loop, and none of another one.
	chmod 600 "$secret"
	says "${gone[@]}"
	for name in "${goes[@]}"; do
		expect_exit "${held[$name]}" 0
		[ "$(ends "${reason/NAME/${name%/*}}")" -eq 3 ]
		must_fail size "$name"
		[ "$kind" = tls-certificates ] ||
			expect_failure 1 gnutls_handshake nbdinfo --size "$(nbd_uri "$name" three)"
	done
	wait_until "their ends" listed "ids == ['', $left]"
	goes_on clear bob carol

	# A handshake that is under way ends well with a secret that stays alone.
	[ "$kind" = tls-certificates ] || { trusts "${stays[@]}" dora; says '+nbd key dora'; }
	in_handshake "$place" "$(by dora)"
	crl_days=101 trusts dora "${stays[@]}"
	case $kind in
	tls-psk) says 'nbd tls-psk: nothing has changed' ;;
	tls-certificates) says "nbd $read_again" ;;
	esac
	handshake_ends 0
	in_handshake "$place" "$(by dora)"
	trusts "${stays[@]/dora/}"
	says "${gone[0]/alice/dora}"
	handshake_ends 1
	wait_line "$gateway_log" "connection ends: ${reason/NAME/dora}"
	"nbd_$kind"
	load_end clear bob carol
	stop_process "$gateway_pid"
	stop_process "$server_pid"
done
