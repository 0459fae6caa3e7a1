#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-server and rtrs-nbd listen at each address of a name, once, and without those that this
# machine lacks; the message and "show" name each.  A reload follows the name.
. "${0%/*}/names.sh"
. ./tests/functions.sh
requires_server; requires_gateway
requires python3 -c 'import socket'
names_begin

# listeners SOCKET: where the program at a control socket says that it listens.
listeners() {
	"$top_builddir/rtrsctl" --json --socket "$1" show |
		with_json 'print(*a["listeners"])'
}

v6=
! grep -q '^0\{31\}1 ' /proc/net/if_inet6 || v6=yes

# ---- rtrs-server ----

# 198.51.100.1 is no address of this machine.
names_are 127.0.0.1=store 127.0.0.2=store 127.0.0.1=store 198.51.100.1=store ${v6:+::1=store}
ctl=$tmp/server.ctl
start_server --listen tcp://store:0 --control "$ctl" d=mem:1M
for address in 127.0.0.1 127.0.0.2 ${v6:+'\[::1\]'}; do
	[ "$(grep -c "^listening on tcp://$address:[1-9]" "$server_log")" -eq 1 ]
	listeners "$ctl" | grep -q "tcp://$address:[1-9]"
done
must_fail grep -q '^listening on .*198\.51\.100\.1' "$server_log"

# With none of them it does not start, and says at which.
names_are 198.51.100.1=store 198.51.100.2=store
expect_failure 1 "cannot listen on tcp://198.51.100.1:1234: Cannot assign requested address" \
	"$RTRS_SERVER" --listen tcp://store --control none d=mem:1M

# A name with one address that is not here is a mistake, as an address is.
names_are 198.51.100.1=store
expect_failure 1 "no interface of this machine has the address" \
	"$RTRS_SERVER" --listen tcp://store --control none d=mem:1M

# One address of two is another program's.
names_are 127.0.0.1=store 127.0.0.2=store
taken=$(sed -n 's,^listening on tcp://127.0.0.2:,,p' "$server_log")
expect_failure 1 "cannot listen on tcp://127.0.0.2:$taken: Address already in use" \
	"$RTRS_SERVER" --listen "tcp://store:$taken" --control none d=mem:1M

# A name has sixteen addresses at most.
for n in {1..17}; do echo "127.0.1.$n=many"; done >"$tmp/many"
mapfile -t many <"$tmp/many"
names_are "${many[@]}"
start_server --listen tcp://many:0 --control none d=mem:1M
[ "$(grep -c '^listening on ' "$server_log")" -eq 16 ]

# A reload asks the resolver again.
names_are 127.0.0.3=moving 127.0.0.4=moving
printf '%s\n' '[server]' "listen = tcp://127.0.0.1:0" "listen = tcp://moving:$taken" \
	'[export "d"]' 'path = mem:1M' >"$tmp/conf"
start_server --config "$tmp/conf" --control "$tmp/moving.ctl"
listeners "$tmp/moving.ctl" | grep -q "tcp://127.0.0.3:$taken tcp://127.0.0.4:$taken"
names_are 127.0.0.4=moving 198.51.100.1=moving 127.0.0.5=moving
"$top_builddir/rtrsctl" --socket "$tmp/moving.ctl" reload >"$tmp/changes"
grep -q -F -- "-listen tcp://127.0.0.3:$taken" "$tmp/changes"
grep -q -F -- "+listen tcp://127.0.0.5:$taken" "$tmp/changes"
must_fail grep -q -F -e 127.0.0.4 -e 198.51.100.1 "$tmp/changes"
listeners "$tmp/moving.ctl" | grep -q "tcp://127.0.0.4:$taken tcp://127.0.0.5:$taken"
# A name that leads to no address of this machine any more, new or known, changes nothing.
for address in 198.51.100.1 198.51.100.2; do
	names_are "$address=moving"
	expect_failure 1 "cannot listen on tcp://$address:$taken: Cannot assign requested address" \
		"$top_builddir/rtrsctl" --socket "$tmp/moving.ctl" reload
	listeners "$tmp/moving.ctl" | grep -q "tcp://127.0.0.4:$taken tcp://127.0.0.5:$taken"
done
names_are 198.51.100.1=moving 198.51.100.2=moving
must_fail "$top_builddir/rtrsctl" --socket "$tmp/moving.ctl" reload
listeners "$tmp/moving.ctl" | grep -q "tcp://127.0.0.4:$taken tcp://127.0.0.5:$taken"

# ---- rtrs-nbd ----

names_are 127.0.0.1=gate 127.0.0.2=gate 127.0.0.1=gate 198.51.100.1=gate ${v6:+::1=gate}
start_gateway -v -i gate -p 0 control="$tmp/gate.ctl" "server=127.0.0.1:$server_port" export=d
port=$(sed -n 's,.*tcp://127.0.0.1:\([0-9]*\): listening,\1,p' "$gateway_log")
for address in 127.0.0.1 127.0.0.2 ${v6:+'\[::1\]'}; do
	[ "$(grep -c "tcp://$address:$port: listening" "$gateway_log")" -eq 1 ]
	listeners "$tmp/gate.ctl" | grep -q "tcp://$address:$port"
done
must_fail grep -q '198\.51\.100\.1.*listening' "$gateway_log"
names_are 198.51.100.1=gate
expect_failure 1 "cannot listen on gate port 0: Cannot assign requested address" \
	"$RTRS_NBD" -f -i gate -p 0 "server=127.0.0.1:$server_port" export=d

# ---- a resolver that never answers ----

# SIGTERM ends a server whose reload waits for a resolver that never answers: it reads a FIFO.
mkfifo "$tmp/hosts.fifo"
mount --bind "$tmp/hosts.fifo" /etc/hosts
"$top_builddir/rtrsctl" --socket "$tmp/moving.ctl" reload >"$tmp/reload" 2>&1 &
reload_pid=$!
asks() { cat "/proc/$server_pid/task/"*/comm | grep -x rtrs-names; }
wait_until "a question to the resolver" asks
stop_server "$server_pid"
expect_exit "$reload_pid" 1
cat "$tmp/reload"
grep -q -E 'the (program ends|server stops)$' "$tmp/reload"
# Otherwise each program gives up, the second name of a program sooner.
"$RTRS_NBD" -f -i gate -p 0 server=127.0.0.1:1 connect-timeout=forever export=d \
	>"$tmp/gate.out" 2>&1 &
gate_pid=$!
printf '%s\n' '[server]' 'listen = tcp://moving:1' 'listen = tcp://moving:2' >"$tmp/conf"
must_fail timeout "$TIMEOUT_S" "$RTRS_SERVER" --check --config "$tmp/conf" >"$tmp/check.out" 2>&1
cat "$tmp/check.out"
grep -F "'tcp://moving:1': the resolver has not answered for 10 s" "$tmp/check.out"
grep -F "'tcp://moving:2': the resolver has not answered for 1 s" "$tmp/check.out"
expect_exit "$gate_pid" 1
grep -F "'gate' --port '0': the resolver has not answered for 10 s" "$tmp/gate.out"
umount --lazy /etc/hosts
