#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that do nothing keep what they have.  Behind a load come IDLE_SECONDS without any: then
# the server and both gateways have no more memory, descriptors and threads than before, and have
# logged nothing.  Meanwhile the certificate of the server ends: sessions that stand go on, a client
# that comes now is refused for it, and with a new certificate it gets in.  make long RUN=idle has
# hours of this.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway; requires_plugin
requires_plain_build
/usr/bin/python3 -c 'import nbd' 2>/dev/null || skip "python3-libnbd is not installed"

seconds=${IDLE_SECONDS:-10} grows_kb=1024
# It writes all memory that is allocated, and what nobody uses is to cost nothing.
unset MALLOC_PERTURB_
truncate -s 32M "$tmp/one" "$tmp/two"
authority "$tmp/pki"
server_is=('cn = "disks"' 'ip_address = 127.0.0.1' tls_www_server signing_key)
end=$(($(date +%s) + seconds / 2 + TIMEOUT_S / 4))
certificate "$tmp/pki" server "${server_is[@]}" \
	"expiration_date = \"$(date --utc --date="@$end" '+%F %T UTC')\""
live_files
client_files alice

start_server --tls require --tls-certificates "$tmp/live" --control "$tmp/control" \
	--metrics "unix:$tmp/metrics" "one=$tmp/one" "two=$tmp/two"
parameters=("server=127.0.0.1:$server_port" tls=require "tls-certificates=$tmp/alice")
start_gateway "${parameters[@]}" export=one metrics-file="$tmp/gateway.prom" \
	control="$tmp/gateway.ctl"
gateway_uri=$uri
start_nbdkit "${parameters[@]}" export=two metrics-file="$tmp/nbdkit.prom" control="$tmp/nbdkit.ctl"
pids=("$server_pid" "$gateway_pid" "$nbdkit_pid")

# NBD clients that write, read, and then say nothing until there is a line for them.
cat >"$tmp/clients.py" <<'END2'
import nbd, sys
MIB = 1 << 20
clients = [nbd.NBD() for _ in sys.argv[1:]]
for client, uri in zip(clients, sys.argv[1:]):
    client.connect_uri(uri)
def io(round):
    for i, client in enumerate(clients):
        for at in range(0, 32 * MIB, MIB):
            client.pwrite(bytes([round, i + 1]) * (MIB // 2), at)
        client.flush()
        for at in range(0, 32 * MIB, MIB):
            assert client.pread(MIB, at) == bytes([round, i + 1]) * (MIB // 2)
for round, _ in enumerate(sys.stdin):
    io(round)
    print("done", round, flush=True)
END2
coproc clients { /usr/bin/python3 "$tmp/clients.py" "$gateway_uri" "$uri"; }
clients_in=${clients[1]} clients_out=${clients[0]}
cleanup_fn kill_process "$clients_PID"
# Two rounds: whatever is allocated once is allocated.
round=0
io() {
	local word
	echo >&"$clients_in"
	read -r -t $((4 * TIMEOUT_S)) word <&"$clients_out" || fail "no answer in round $round"
	[ "$word" = "done $round" ] || fail "'$word' in round $round"
	round=$((round + 1))
}
io
io

# has PID: KB of memory, descriptors, threads
has() {
	echo "$(awk '$1 == "Rss:" { print $2 }' "/proc/$1/smaps_rollup")" \
		"$(find "/proc/$1/fd" -type l | wc -l)" \
		"$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)"
}
lines() { cat "$server_log" "$gateway_log" "$nbdkit_log" | wc -l; }
before=() ticks=0 logged=$(lines)
for pid in "${pids[@]}"; do before+=("$(has "$pid")"); done
for i in {1..10}; do
	idle_for $((seconds / 10)) "${pids[@]}"
	ticks=$((ticks + idle_ticks))
	for pid in "${pids[@]}"; do echo "part $i: process $pid: $(has "$pid")"; done
done
# no_more N: a file of metrics that is just being written has a descriptor for a moment.
no_more() {
	local kb fds threads kb2 fds2 threads2
	read -r kb fds threads <<<"${before[$1]}"
	read -r kb2 fds2 threads2 <<<"$(has "${pids[$1]}")"
	[ "$kb2" -le $((kb + grows_kb)) ] && [ "$fds2" -le "$fds" ] && [ "$threads2" -le "$threads" ]
}
for i in "${!pids[@]}"; do
	wait_until "process ${pids[i]} to have no more than ${before[i]}" no_more "$i"
done
echo "$ticks ticks in $seconds s"
# Of a hundred in a second.
[ "$ticks" -le $((2 * seconds)) ] || fail "$ticks ticks in $seconds s"
[ "$(lines)" -eq "$logged" ] || fail "a log has new lines"

bench=("$top_builddir/rtrs-bench" --number-ios=10 --rw=read --tls=require
	--tls-certificates="$tmp/alice" "127.0.0.1:$server_port" one)
is_over() { [ "$(date +%s)" -gt "$end" ]; }
wait_until "the end of the certificate" is_over
expect_failure 1 'it has ended, by the clock of this machine' "${bench[@]}"
io
certificate "$tmp/pki" server "${server_is[@]}"
cp "$tmp"/pki/server-*.pem "$tmp/live/"
"$top_builddir/rtrsctl" --socket "$tmp/control" reload
"${bench[@]}"
io
for program in gateway nbdkit; do
	"$top_builddir/rtrsctl" --socket "$tmp/$program.ctl" status
done
eval "exec $clients_in>&-"
