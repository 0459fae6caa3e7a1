#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client keeps the names of server= and path=: it resolves them at each attempt, tries all
# addresses, and finds a server that has moved.  rtrs-bench tries all addresses, too.
. "${0%/*}/names.sh"
. ./tests/functions.sh
requires_server; requires_gateway
requires python3 -c 'import socket'
requires nbdinfo --version
names_begin

random_file "$tmp/disk" $((1 << 20))
ctl=$tmp/gate.ctl
rtrsctl() { "$top_builddir/rtrsctl" --socket "$ctl" "$@"; }

# path_is NAME MEMBER REGEX: what "show" says of a path.
path_is() {
	rtrsctl --json show | python3 -c '
import json, re, sys
_, name, member, regex = sys.argv
for path in json.load(sys.stdin)["sessions"][0]["paths"]:
    if path["name"] == name and re.search(regex, path[member]):
        sys.exit(0)
sys.exit(1)' "$@"
}

serve_at() {
	start_server --listen "tcp://$1" --control none "disk=$tmp/disk"
}

reads() {
	timeout "$TIMEOUT_S" nbdcopy "$uri" "$tmp/copy"
	cmp "$tmp/disk" "$tmp/copy"
}

v6=
! grep -q '^0\{31\}1 ' /proc/net/if_inet6 || v6=yes

# ---- all addresses in turn ----

# Nobody listens at the first ones.
serve_at 127.0.0.1:0
port=$server_port
names_are ${v6:+::1=store} 127.0.0.9=store 127.0.0.1=store 127.0.0.8=store
start_gateway heartbeat=200 heartbeat-misses=2 control="$ctl" "server=store:$port" path=later \
	export=disk
reads
path_is "store:$port" peer "^127\.0\.0\.1:$port\$"
"$top_builddir/rtrs-bench" --number-ios=1 "store:$port" disk

# ---- a path that does not resolve is named, and tried again ----

wait_line "$gateway_log" "path later: cannot connect: cannot resolve \"later\": "
path_is later cause 'cannot resolve "later": '
path_is later peer '^$'
names_are 127.0.0.1=store 127.0.0.7=later
"$RTRS_SERVER" --listen tcp://127.0.0.7:1234 --control none m=mem:1M </dev/null \
	>"$tmp/later.log" 2>&1 &
later=$!
cleanup_fn stop_process "$later"
wait_until "the path of the other server" path_is later cause \
	'127\.0\.0\.7:1234: not the server that the other paths lead to'
rtrsctl path remove later

# ---- the name moves ----

stop_server "$server_pid"
names_are 127.0.0.3=store
serve_at "127.0.0.3:$port"
reads
path_is "store:$port" peer "^127\.0\.0\.3:$port\$"

# A resolver that has no answer any more is no reason to forget what it said.
names_are
stop_server "$server_pid"
serve_at "127.0.0.3:$port"
reads
path_is "store:$port" peer "^127\.0\.0\.3:$port\$"

# ---- path add ----

names_are 127.0.0.3=store 127.0.0.3=again
rtrsctl path add "again:$port"
# Both lead to one address, which the server lets in once.
wait_until "a refusal" path_is "again:$port" cause \
	"127\.0\.0\.3:$port: connection 0 was refused: File exists"
expect_failure 1 "there is a path 'again:$port' already" "$top_builddir/rtrsctl" --socket "$ctl" \
	path add "tcp://again:$port"
rtrsctl path remove "again:$port"
rtrsctl path add "[fe80::1%nosuch0]:$port"
wait_until "the missing interface" path_is "[fe80::1%nosuch0]:$port" cause \
	"there is no interface 'nosuch0'"
rtrsctl path remove "[fe80::1%nosuch0]:$port"
reads

# ---- a resolver that never answers ----

# It reads a FIFO: forgotten questions leave their threads behind, up to a bound.
mkfifo "$tmp/hosts.fifo"
mount --bind "$tmp/hosts.fifo" /etc/hosts
for forgotten in {1..20}; do
	rtrsctl path add "forgotten$forgotten:$port"
	rtrsctl path remove "forgotten$forgotten:$port"
done
rtrsctl path add "last:$port"
wait_until "the bound" path_is "last:$port" cause \
	'cannot ask for the addresses: the resolver does not answer'
[ "$(cat "/proc/$gateway_pid/task/"*/comm | grep -c -x rtrs-names)" -eq 16 ]
# A path that knows addresses comes back all the same.
stop_server "$server_pid"
serve_at "127.0.0.3:$port"
reads
umount --lazy /etc/hosts
# Whoever has the FIFO open reads its end.
: <>"$tmp/hosts.fifo"
no_lookups() { ! cat "/proc/$gateway_pid/task/"*/comm | grep -q -x rtrs-names; }
wait_until "the end of the forgotten questions" no_lookups
rtrsctl path remove "last:$port"
stop_process "$gateway_pid"

# ---- starts that fail name the addresses ----

# Who accepts and says nothing has two seconds, while another address is left.
python3 - "$tmp/silent" <<'END' &
import os, socket, sys, time
s = socket.create_server(("127.0.0.5", 0))
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(s.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    time.sleep(1000)
END
silent_pid=$!
cleanup_fn kill_process "$silent_pid"
wait_until "a silent listener" test -s "$tmp/silent"
silent=$(cat "$tmp/silent")
gateway_fails() {
	expect_failure 1 "$1" "$RTRS_NBD" -f -U "$tmp/fails.sock" control=none "${@:2}" export=disk
}
refused='Connection refused[^;]*'
names_are 127.0.0.5=two 127.0.0.6=two 127.0.0.4=two
gateway_fails "server=tcp://two:$silent: .*[46]:$silent: $refused; .*[456]:$silent: " \
	"server=tcp://two:$silent"
grep -q -F "127.0.0.5:$silent: no answer within 2 s" "$tmp/failure.out"
expect_failure 1 "^rtrs-bench: server two:$silent: .*[46]:$silent: $refused; .*[456]:$silent: " \
	"$top_builddir/rtrs-bench" --transport=tcp "two:$silent" disk
gateway_fails 'server=nosuch: .*cannot resolve "nosuch": ' server=nosuch
gateway_fails "server=\[fe80::1%nosuch0\]: .*there is no interface 'nosuch0'" \
	'server=[fe80::1%nosuch0]'
