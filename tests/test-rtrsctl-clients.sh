#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl clients" and a server: who is connected, from where, since when, what each has open, and
# how fast each is, while paths come and go.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl

truncate -s 8M "$tmp/disk" "$tmp/other"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk" \
	"other=$tmp/other,readonly"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
"$rtrsctl" clients >"$tmp/clients"
[ "$(cat "$tmp/clients")" = \
	"SESSION  PEER  IDENTITY  TRANSPORT  CIPHER  KEY  STATE  SINCE  EXPORTS  IOPS  MB/s" ] ||
	fail "$(cat "$tmp/clients")"
start_nbdkit "$first" path="127.0.0.3@$second" transport=tcp sessname=busy policy=round-robin
busy=$nbdkit_pid sock1=$sock
start_nbdkit "$first" export=disk mode=ro transport=tcp sessname=idle

# clients_are EXPRESSION: of the clients c by their session
clients_are() {
	"$rtrsctl" --json clients | with_json "
assert a['ok'] and a['program'] == 'rtrs-server' and a['name'] == 'disk', a
assert a['pid'] == $server_pid, a
c = {x['session']: x for x in a['clients']}
print(c)
assert $1"
}
wait_until "both clients" clients_are "len(c) == 2 and len(c['busy']['peers']) == 2"

# Both exports are open, and read by one client until the file is gone; the other client has read.
: >"$tmp/go"
nbdsh_run "nbd+unix:///disk?socket=$sock1" <<END &
import os
other = nbd.NBD()
other.connect_uri("nbd+unix:///other?socket=$sock1")
idle = nbd.NBD()
idle.connect_uri("$uri")
for i in range(1000):
    idle.pread(512, 0)
open("$tmp/open", "w").close()
while os.path.exists("$tmp/go"):
    h.pread(4096, 0)
END
io=$!
wait_until "the exports" test -e "$tmp/open"
clients_are "c['busy']['iops'] > 0 and c['busy']['bytes_per_second'] > 4000 * c['busy']['iops']"
clients_are "c['idle']['iops'] == c['idle']['bytes_per_second'] == 0"
clients_are "sorted((e['export'], e['mode']) for e in c['busy']['exports']) == \
	[('disk', 'rw'), ('other', 'ro')]"
clients_are "c['idle']['exports'] == [{'export': 'disk', 'mode': 'ro', 'allowed': True,
	'removed': False}]"
clients_are "sorted(c['busy']['peers']) == ['127.0.0.1', '127.0.0.3']"
clients_are "c['busy']['transports'] == ['tcp']"
"$rtrsctl" clients >"$tmp/clients"
cat "$tmp/clients"
row='^busy +127\.0\.0\.[13], 127\.0\.0\.[13] +- +tcp +- +- +up +[0-9]+ s '
row+='+disk \(rw\), other \(ro\) +[1-9]'
grep -E "${row}[0-9]* +[0-9.]+\$" "$tmp/clients"
grep -E '^idle +127\.0\.0\.1 +- +tcp +- +- +up +[0-9]+ s +disk \(ro\) +0 +0\.0$' "$tmp/clients"

# A path less, and a session that was away for a moment: it is connected since then.
"$rtrsctl" --gateway --pid "$busy" path disconnect "127.0.0.3@$second"
wait_until "the end of a path" clients_are "c['busy']['peers'] == ['127.0.0.1']"
clients_are "c['busy']['iops'] > 0"
up_ns=$("$rtrsctl" --server --json show | with_json '
print(*(s["up_ns"] for s in a["sessions"]
        if s["name"] == "busy" and s["state"] == "up"))')
"$rtrsctl" --gateway --pid "$busy" path reconnect "127.0.0.3@$second"
wait_until "the path" clients_are "len(c['busy']['peers']) == 2"
clients_are "c['busy']['up_ns'] > $up_ns > 0"
"$rtrsctl" session disconnect busy
wait_until "the session" clients_are "'busy' in c and c['busy']['state'] == 'up'"
clients_are "0 < c['busy']['up_ns'] < c['idle']['up_ns']"
rm "$tmp/go"
expect_exit $io 0

# nbdkit serves its clients itself: the plugin, when nobody else is asked, cannot tell of them.
# Beside a server, and above, the plugin is passed over.
stop_process "$busy"
stop_process "$nbdkit_pid"
start_nbdkit "$first" control="$tmp/gateway.sock"
if [ "$NBD_FRONT" = nbdkit ]; then
	no_list='nbdkit-rtrs-plugin has no list of NBD clients: nbdkit serves them'
	expect_failure 1 "^rtrsctl: $no_list \\($tmp/gateway.sock\\)\$" \
		"$rtrsctl" --socket "$tmp/gateway.sock" clients
	"$rtrsctl" --json --socket "$tmp/gateway.sock" clients >"$tmp/clients" || true
	grep "^{\"ok\":false,\"error\":\"$no_list" "$tmp/clients"
fi

# So is rtrs-attach, which has a block device; this one is made by hand.
cat >"$tmp/attach.py" <<'END'
import json, os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o600)
listener.listen(16)
while True:
    client = listener.accept()[0]
    line = client.recv(4096)
    if not line:
        continue
    answer = {"ok": True, "program": "rtrs-attach", "name": "disk", "pid": os.getpid(),
              "now_ns": 1, "exports": [], "sessions": []}
    if json.loads(line)["command"] not in ("list", "stats"):
        answer = {"ok": False, "error": "rtrs-attach has no command of this name"}
    client.sendall(json.dumps(answer).encode() + b"\n")
    client.close()
END
attach_sock=$RUNTIME_DIRECTORY/rtrs-attach-$$.sock
/usr/bin/python3 "$tmp/attach.py" "$attach_sock" &
attach=$!
cleanup_fn kill_process $attach
wait_until "the control socket" test -S "$attach_sock"
"$rtrsctl" list | grep -x "rtrs-attach disk"
"$rtrsctl" clients >"$tmp/clients" 2>"$tmp/errors"
[ ! -s "$tmp/errors" ] || fail "$(cat "$tmp/errors")"
expect_failure 1 "^rtrsctl: rtrs-attach has no list of NBD clients: it has a block device " \
	"$rtrsctl" --socket "$attach_sock" clients
kill_process $attach

# A program made by hand: what is counted at the first and at the second question, a second later.
cat >"$tmp/program.py" <<'END'
import json, os, socket, sys

def path(name, port, count):
    stats = {"count": count, "bytes": 1000 * count, "errors": 0, "log2_ns": [0] * 9 + [count]}
    return {"name": name, "state": "connected", "peer": name, "transport": "tcp", "src_addr": port,
            "stats": {"read": stats}}

looks = [
    {"two": [path("a", "1", 1000000), path("b", "2", 2000000)],
     "lost": [path("a", "3", 500), path("b", "4", 700)],
     "back": [path("a", "5", 900000)]},
    {"two": [path("a", "1", 1000030), path("b", "2", 2000040)],
     "lost": [path("a", "3", 510)],
     "back": [path("a", "6", 900007)],
     "new": [path("a", "7", 5)]},
]
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + ".new")
listener.listen(16)
os.rename(sys.argv[1] + ".new", sys.argv[1])
for second, look in enumerate(looks):
    client = listener.accept()[0]
    assert json.loads(client.recv(4096)) == {"command": "stats"}
    sessions = [{"name": n, "uuid": n, "state": "up", "up_ns": 3 * 3600 * 10**9, "devices": [],
                 "paths": paths} for n, paths in look.items()]
    answer = {"ok": True, "program": "rtrs-server", "pid": 1, "now_ns": second * 10**9,
              "exports": [], "sessions": sessions}
    client.sendall(json.dumps(answer).encode() + b"\n")
    client.close()
END
/usr/bin/python3 "$tmp/program.py" "$tmp/ctl" &
program=$!
cleanup_fn stop_process $program
wait_until "the program" test -S "$tmp/ctl"
"$rtrsctl" --socket "$tmp/ctl" clients >"$tmp/clients"
cat "$tmp/clients"
# A path with another port is another one, and newer.
[ "$(awk '{ print $1, $(NF - 1), $NF }' "$tmp/clients")" = "SESSION IOPS MB/s
two 70 0.1
lost 10 0.0
back 900007 900.0
new 5 0.0" ] || fail "rates are not those of the second between"
[ "$(grep -c ' 3 h ' "$tmp/clients")" -eq 4 ]
wait $program
