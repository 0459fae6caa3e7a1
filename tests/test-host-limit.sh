#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of a host count an IPv6 network of 64 bits as one host, because a host may have any address
# of it.  A client of ours that is over the limit of paths in set-up waits until there is room.  In
# a network namespace, where such addresses are for the asking.
if [ -z "${IN_NAMESPACE-}" ]; then
	unshare -rn true || { echo "SKIP: needs a network namespace: unshare -rn"; exit 77; }
	IN_NAMESPACE=yes exec unshare -rn bash "$0" "$@"
fi
. ./tests/functions.sh
requires_server; requires_gateway
requires curl --version
requires /usr/bin/python3 --version
requires ip link set lo up
for address in fd00::1 fd00::2 fd00::ffff:0:0:2 fd00:0:0:1::2; do
	requires ip -6 address add "$address/64" dev lo nodad
done

truncate -s 1M "$tmp/disk"
# A depth of 1, so that memory is no limit.
start_server --listen 'tcp://[fd00::1]:0' --allow fd00::/16 --setup-timeout 600 \
	--queue-depth 1 --metrics "unix:$tmp/metrics" "disk=$tmp/disk"

# paths NAME SOURCE N WORD
paths() {
	mkfifo "$tmp/$1.in"
	/usr/bin/python3 "$top_srcdir/tests/paths.py" "$2" fd00::1 "$server_port" "$3" 1 5 \
		<"$tmp/$1.in" >"$tmp/$1" &
	exec {fd}>"$tmp/$1.in"
	wait_line "$tmp/$1" '^(up|refused)$'
	grep -q "$4" "$tmp/$1"
}

# The 64 that a host may have in set-up.
paths all fd00::2 64 up
held=$!
paths one_more fd00::2 1 refused
wait_line "$server_log" '\[fd00::2\]:.*too many paths in set-up from this host'
paths other_address fd00::ffff:0:0:2 1 refused
wait_line "$server_log" '\[fd00::ffff:0:0:2\]:.*too many paths in set-up from this host'
paths other_network fd00:0:0:1::2 1 up

# The start tries again until there is room, and says nothing, whatever else there is, as a path to
# an address that does not answer.
refused() {
	curl -s --unix-socket "$tmp/metrics" http://localhost/metrics |
		sed -n 's/^rtrs_server_refused_total{reason="limit"} //p'
}
more_refused() { [ "$(refused)" -ge $((before + 2)) ]; }
before=$(refused)
"$RTRS_NBD" -f -U "$tmp/nbd" -P "$tmp/pid" server="[fd00::1]:$server_port" export=disk \
	"path=[fd00::dead]:1" connections=1 control=none >"$tmp/gateway.log" 2>&1 &
gateway_pid=$!
cleanup_fn kill_process "$gateway_pid"
wait_until "two refusals" more_refused
must_fail test -s "$tmp/pid"
kill_process "$held"
wait_until "rtrs-nbd" test -s "$tmp/pid"
must_fail grep -v 'fd00::dead' "$tmp/gateway.log"
kill -TERM "$gateway_pid"
expect_exit "$gateway_pid" 0
