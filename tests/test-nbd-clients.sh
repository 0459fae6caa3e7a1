#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl clients" and rtrs-nbd: who is connected, by which key or certificate, from where, since
# when, with which export, and how fast each is; in text and in JSON; while clients come and go,
# with hundreds of them, and while the gateway stops.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl
for name in alice bob/laptop; do
	"$top_builddir/rtrs-psk" $name
done >"$tmp/psk"
authority "$tmp/pki"
certificate "$tmp/pki" server 'cn = "gateway"' 'ip_address = 127.0.0.1' tls_www_server signing_key
certificate "$tmp/pki" client 'cn = "carol"' tls_www_client signing_key
truncate -s 8M "$tmp/disk" "$tmp/other" "$tmp/third"
start_server --control none "disk=$tmp/disk" "other=$tmp/other,readonly"
session=("server=127.0.0.1:$server_port" connections=3 mode=auto)

# Before a client has come there is a head alone.
start_gateway --threads=3 --tls=on --tls-psk="$tmp/psk" "${session[@]}" control="$tmp/ctl" \
	name=office
keys=$gateway_pid keys_sock=$sock keys_log=$gateway_log
"$rtrsctl" --socket "$tmp/ctl" clients >"$tmp/clients"
[ "$(cat "$tmp/clients")" = \
	"CLIENT  PEER  IDENTITY  TRANSPORT  CIPHER  KEY  STATE  SINCE  EXPORTS  IOPS  MB/s" ] ||
	fail "$(cat "$tmp/clients")"
start_gateway_tcp -r --threads=2 --tls=on --tls-certificates="$tmp/pki" --tls-verify-peer \
	"${session[@]}" export=disk control="$tmp/ctl2"
certs=$gateway_pid

# clients_are SOCKET EXPRESSION: of the clients c of the gateway at this control socket
clients_are() {
	"$rtrsctl" --json --socket "$1" clients >"$tmp/json"
	/usr/bin/python3 -c "
import json, os
a = json.load(open('$tmp/json'))
assert a['ok'] and a['program'] == 'rtrs-nbd', a
c, user = a['clients'], 'uid=%d' % os.getuid()
def of(identity):
    return next(x for x in c if x['identity'] == identity)
print(c)
assert $2"
}

# ---- keys, and in clear; over a unix socket ----

# Three that are connected: one reads, one has read, one negotiates.  A name with a label is the
# identity in front of the label.
: >"$tmp/go"
timeout $((4 * TIMEOUT_S)) nbdsh -c - <<END &
import os
h.set_uri_allow_local_file(True)
h.connect_uri("nbds+unix://alice@/disk?socket=$keys_sock&tls-psk-file=$tmp/psk")
clear = nbd.NBD()
clear.connect_uri("nbd+unix:///other?socket=$keys_sock")
bob = nbd.NBD()
bob.set_tls(nbd.TLS_REQUIRE)
bob.set_tls_username("bob/laptop")
bob.set_tls_psk_file("$tmp/psk")
bob.set_opt_mode(True)
bob.connect_unix("$keys_sock")
for i in range(100):
    clear.pread(512, 0)
h.pwrite(bytes(4096), 0)
open("$tmp/open", "w").close()
while os.path.exists("$tmp/go"):
    h.pread(4096, 0)
bob.opt_abort()
END
io=$!
wait_until "the clients" test -e "$tmp/open"
clients_are "$tmp/ctl" "len(c) == 3 and a['name'] and a['pid'] == $keys"
clients_are "$tmp/ctl" "of('psk:alice')['exports'] == [{'export': 'disk', 'mode': 'rw'}] and \
	of('psk:alice')['ciphers'] == ['TLS1.3 AES-128-GCM'] and \
	of('psk:alice')['state'] == 'open' and of('psk:alice')['iops'] > 0 and \
	abs(of('psk:alice')['bytes_per_second'] - of('psk:alice')['iops'] * 4096) < 1"
clients_are "$tmp/ctl" "of('psk:bob')['state'] == 'negotiating' and of('psk:bob')['exports'] == []"
clients_are "$tmp/ctl" "of('')['exports'] == [{'export': 'other', 'mode': 'ro'}] and \
	of('')['ciphers'] == [] and of('')['key_age_ns'] is None and \
	of('')['iops'] == of('')['bytes_per_second'] == 0"
clients_are "$tmp/ctl" "all(x['transports'] == ['unix'] and user in x['peers'][0] for x in c) and \
	sorted(x['client'] for x in c) == ['client 1', 'client 2', 'client 3']"
# The age of a key begins with the file, when the gateway read it.
touch -d '2 hours ago' "$tmp/psk"
clients_are "$tmp/ctl" "0 < of('psk:alice')['key_age_ns'] < 7200 * 10**9 and \
	all(0 < x['up_ns'] < 3600 * 10**9 for x in c)"
"$rtrsctl" --socket "$tmp/ctl" clients >"$tmp/clients"
cat "$tmp/clients"
# row REGEX...: a line of the table has these cells
row() {
	local cells
	printf -v cells ' +%s' "${@:2}"
	grep -E "^$1$cells\$" "$tmp/clients"
}
who='client [123]' peer='unix:pid=[0-9]+,uid=[0-9]+' cipher='TLS1\.3 AES-128-GCM'
age='[0-9]+ (s|min)'
row "$who" "$peer" psk:alice unix "$cipher" "$age" open "$age" 'disk \(rw\)' '[1-9][0-9]*' '[0-9.]+'
row "$who" "$peer" psk:bob unix "$cipher" "$age" negotiating "$age" - 0 '0\.0'
row "$who" "$peer" - unix - - open "$age" 'other \(ro\)' 0 '0\.0'
rm "$tmp/go"
expect_exit $io 0
wait_until "their end" clients_are "$tmp/ctl" "c == []"

# ---- certificates, over TCP; a gateway that is read-only ----

mkfifo "$tmp/hold"
timeout $((4 * TIMEOUT_S)) nbdsh -c - <<END &
h.set_uri_allow_local_file(True)
h.connect_uri("nbds://127.0.0.1:$port?tls-certificates=$tmp/pki")
clear = nbd.NBD()
clear.connect_uri("nbd://127.0.0.1:$port")
h.pread(512, 0)
open("$tmp/hold").read()
END
io=$!
wait_until "both clients" clients_are "$tmp/ctl2" "len([x for x in c if x['exports']]) == 2"
clients_are "$tmp/ctl2" "of('cert:carol')['ciphers'] == ['TLS1.3 AES-128-GCM'] and \
	of('cert:carol')['key_age_ns'] is None and \
	of('cert:carol')['exports'] == [{'export': 'disk', 'mode': 'ro'}]"
clients_are "$tmp/ctl2" "all(x['client'].endswith(' of ' + x['peers'][0]) and \
	x['peers'][0].startswith('127.0.0.1:') and x['transports'] == ['tcp'] for x in c)"
"$rtrsctl" --socket "$tmp/ctl2" clients >"$tmp/clients"
cat "$tmp/clients"
row 'client [0-9]+' '127\.0\.0\.1:[0-9]+' cert:carol tcp "$cipher" - open "$age" 'disk \(ro\)' 0 \
	'0\.0'
: >"$tmp/hold"
expect_exit $io 0

# ---- words ----

start_server --control "$tmp/server.sock" "third=$tmp/third"
"$rtrsctl" --socket "$tmp/server.sock" clients | grep -q '^SESSION '
# says SOCKET COMMAND: the reason of a refusal
says() {
	/usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
print(s.makefile().readline())' "$1" "$2"
}
says "$tmp/server.sock" '{"command":"clients"}' | grep "rtrs-server has no command 'clients'"
says "$tmp/ctl" '{"command":"clients","path":"x"}' | grep 'clients: takes no \\"path\\"'
says "$tmp/ctl" '{"command":"client"}' | grep "rtrs-nbd has no command 'client'"
says "$tmp/ctl" '{"command":"list"}' | grep '"ok":true'

# ---- clients that come and go while the list is made; hundreds of them ----

# Each answer has those that stay, once, and of those that come and go only whole entries.
cat >"$tmp/crowd.py" <<END
import json, socket, threading
STAY = 300
def ask(s):
    s.sendall(b'{"command":"clients"}\n')
    line = b""
    while not line.endswith(b"\n"):
        line += s.recv(1 << 20)
    return json.loads(line)

control = socket.socket(socket.AF_UNIX)
control.connect("$tmp/ctl")
stay = []
for i in range(STAY):
    stay.append(nbd.NBD())
    stay[-1].connect_uri("nbd+unix:///disk?socket=$keys_sock")
first = {c["name"] for c in ask(control)["clients"]}
assert len(first) == STAY

over, turns = threading.Event(), [0]
def churn():
    while not over.is_set():
        g = nbd.NBD()
        g.connect_uri("nbd+unix:///other?socket=$keys_sock")
        s = socket.socket(socket.AF_UNIX)	# leaves before it has said a word
        s.connect("$keys_sock")
        s.close()
        g.pread(512, 0)
        turns[0] += 1
threads = [threading.Thread(target=churn, daemon=True) for _ in range(3)]
for t in threads:
    t.start()
seen, rounds = set(), 0
while turns[0] < 200 or rounds < 100:
    answer = ask(control)
    names = [c["name"] for c in answer["clients"]]
    assert answer["ok"] and len(names) == len(set(names)), answer
    assert first <= set(names), first - set(names)
    for c in answer["clients"]:
        assert c["state"] in ("negotiating", "open", "leaving"), c
        assert (c["state"] == "open") <= ("export" in c), c
        assert c["up_ns"] >= 0 and c["transport"] == "unix", c
    seen |= set(names) - first
    rounds += 1
over.set()
for t in threads:
    t.join()
assert seen, "no client of those that come and go was ever listed"
# Several ask at once; one of them leaves without its answer.
more = [socket.socket(socket.AF_UNIX) for _ in range(8)]
for s in more:
    s.connect("$tmp/ctl")
    s.sendall(b'{"command":"clients"}\n')
more.pop().close()
for s in more:
    assert first <= {c["name"] for c in json.loads(s.makefile().readline())["clients"]}
# Each client counts what it does, and that alone.
for i, g in enumerate(stay):
    for _ in range(i % 3):
        g.pread(1024, 0)
    if i % 2:
        g.flush()
        g.pwrite(bytes(512), 0)
sums = [(c["reads"], c["read_bytes"], c["writes"], c["write_bytes"], c["others"], c["inflight"])
        for c in ask(control)["clients"] if c["name"] in first]
want = [(i % 3, 1024 * (i % 3), i % 2, 512 * (i % 2), i % 2, 0) for i in range(STAY)]
assert sorted(sums) == sorted(want), sums
for g in stay:
    g.shutdown()
END
timeout $((8 * TIMEOUT_S)) nbdsh -c "exec(open('$tmp/crowd.py').read())"

# ---- the end of a gateway under questions ----

cat >"$tmp/asker.py" <<'END'
import json, socket, sys
asked = 0
try:
    while True:
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        f = s.makefile()
        for _ in range(50):
            s.sendall(b'{"command":"clients"}\n')
            line = f.readline()
            if not line:
                break
            answer = json.loads(line)
            assert answer["ok"] or "serves no NBD clients now" in answer["error"], answer
            asked += 1
            open(sys.argv[2], "w").close()
except (ConnectionError, FileNotFoundError):
    pass
assert asked
END
timeout $((2 * TIMEOUT_S)) /usr/bin/python3 "$tmp/asker.py" "$tmp/ctl" "$tmp/asked" &
asker=$!
wait_until "an answer" test -e "$tmp/asked"
kill "$keys"
expect_exit "$keys" 0
expect_exit $asker 0
must_fail grep -i 'error' "$keys_log"
stop_process "$certs"
