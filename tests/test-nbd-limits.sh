#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of both gateways as NBD clients meet them (nbd-limits.py, doc/limits.md): one below each,
# at it, one beyond it and four times as far, with all three forms of headers, in clear and over
# TLS, and all data is checked.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway; requires_plugin
requires_plain_build
requires /usr/bin/python3 --version

authority "$tmp/pki"
certificate "$tmp/pki" server 'cn = "gateway"' 'dns_name = "gateway"' tls_www_server signing_key

truncate -s 384M "$tmp/disk" "$tmp/direct"
longest=$(printf 'n%.0s' {1..254})
truncate -s 1M "$tmp/longest" "$tmp/longer"
# Data and holes in turns of 4 KiB, and 20 GiB of nothing.
/usr/bin/python3 - "$tmp/holes" <<'PYTHON'
import sys
turns = 4 * 1023 + 8
with open(sys.argv[1], "wb") as f:
	for i in range(0, turns, 2):
		f.seek(i * 4096)
		f.write(b"d" * 4096)
	f.truncate(turns * 4096 + (20 << 30))
PYTHON
start_server "disk=$tmp/disk" "direct=$tmp/direct,direct" "holes=$tmp/holes" \
	"$longest=$tmp/longest" "${longest:1}=$tmp/longer"
must_fail timeout "$TIMEOUT_S" "$RTRS_SERVER" --listen tcp://127.0.0.1:0 "n$longest=$tmp/longest"

# limits FRONT HEADERS CASE...
limits() {
	SERVER_PID=${gateway_pid-} TIMEOUT_S=$((2 * TIMEOUT_S)) timeout $((10 * TIMEOUT_S)) \
		/usr/bin/python3 "$top_srcdir/tests/nbd-limits.py" "$sock" "$@"
}
start_gateway --memory=128M "server=127.0.0.1:$server_port"
limits rtrs-nbd simple sizes largest ranges pieces memory paused in_flight memory_of_all names \
	options
limits rtrs-nbd structured sizes paused in_flight names options questions extents
limits rtrs-nbd extended sizes largest paused in_flight names options extents payloads
# Where a device wants whole blocks, parts of a request go through memory of the server.
DISK=direct limits rtrs-nbd simple sizes
stop_process "$gateway_pid"

start_gateway --memory=128M --tls=require --tls-certificates="$tmp/pki" \
	"server=127.0.0.1:$server_port"
export CA=$tmp/pki/ca-cert.pem
limits rtrs-nbd simple sizes
limits rtrs-nbd structured paused in_flight options
limits rtrs-nbd extended sizes memory_of_all
unset CA
stop_process "$gateway_pid"

# nbdkit has limits of its own for names and options.
start_nbdkit "server=127.0.0.1:$server_port" export=disk
limits nbdkit simple sizes pieces memory
limits nbdkit structured largest ranges
stop_process "$nbdkit_pid"
start_nbdkit "server=127.0.0.1:$server_port" export=holes
limits nbdkit structured questions extents
stop_process "$nbdkit_pid"
stop_server "$server_pid"

# Sockets that somebody else listens on, GATE_LISTEN_MAX.
cat >"$tmp/activate.py" <<'PYTHON'
import fcntl, os, socket, sys
n, base, argv = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
given = []
for i in range(n):
	s = socket.socket(socket.AF_UNIX)
	s.bind("%s%d" % (base, i))
	s.listen()
	# High ones, so that none of 3 and so on is taken.
	given.append(fcntl.fcntl(s.detach(), fcntl.F_DUPFD, 200))
for i in range(n):
	os.dup2(given[i], 3 + i)
os.environ["LISTEN_FDS"], os.environ["LISTEN_PID"] = str(n), str(os.getpid())
os.execv(argv[0], argv)
PYTHON
start_server "disk=$tmp/disk"
for n in 15 16; do
	/usr/bin/python3 "$tmp/activate.py" $n "$tmp/given$n." "$RTRS_NBD" -P "$tmp/given$n.pid" \
		"server=127.0.0.1:$server_port" export=disk </dev/null >"$tmp/given$n.log" 2>&1 &
	gateway_pid=$!
	cleanup_fn stop_process "$gateway_pid"
	wait_until "rtrs-nbd" nbdkit_ready_or_ended "$gateway_pid" "$tmp/given$n.pid"
	sock=$tmp/given$n. GIVEN=$n limits rtrs-nbd simple given
	stop_process "$gateway_pid"
done
for n in 17 64; do
	expect_failure '1|2' "LISTEN_FDS '$n': expected at most 16" /usr/bin/python3 \
		"$tmp/activate.py" $n "$tmp/given$n." "$RTRS_NBD" "server=127.0.0.1:$server_port"
done
stop_server "$server_pid"

# The fewest permits and the smallest parts; and one part for the largest request.
for geometry in "1 4K sizes" "2 64M largest"; do
	read -r depth size case <<<"$geometry"
	start_server --queue-depth "$depth" --max-io-size "$size" "disk=$tmp/disk"
	start_gateway "server=127.0.0.1:$server_port"
	limits rtrs-nbd structured "$case"
	stop_process "$gateway_pid"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk
	limits nbdkit structured "$case"
	stop_process "$nbdkit_pid"
	stop_server "$server_pid"
done
