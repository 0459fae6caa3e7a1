# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A client's and a server's machine with two cables, in network namespaces, after functions.sh:
#
#	wires_up			or skips; sets NBDKIT_PREFIX
#	serve NAME=PATH...		on both addresses of the server's machine
#	connect KEY=VALUE...		nbdkit with a path over each cable
#	load_begin; ...; load_end MS	fio at depth 32 meanwhile, which verifies; no request took longer
#	pull 1; plug 1			a cable, 1 or 2
#
# A cable is a bridge, and is cut where the server's end enters it.  So neither machine is told: no
# interface goes down, no packet is refused.
#
# Cable N has 10.77.N.1 at the client's end and 10.77.N.2 at the server's, which has port 1234.

HEARTBEAT_MS=100 HEARTBEAT_MISSES=2
# The first heartbeat that is sent into a cut cable leaves an interval after the last answer, or
# nearly two.
DETECT_MS=$((HEARTBEAT_MS * (HEARTBEAT_MISSES + 2)))
# A second for a request to go another way and to be carried out, and more on a slow machine.  How
# much the machine is busy with others meanwhile is measured beside the load (metronome).
SLACK_MS=$((1000 * TIMEOUT_S / 30))
export HEARTBEAT_MS HEARTBEAT_MISSES DETECT_MS SLACK_MS

# Processes that hold a namespace each, and commands that go into one.
holder() {
	"$@" sleep infinity </dev/null >/dev/null 2>&1 &
	holder_pid=$!
	cleanup_fn kill_process "$holder_pid"
	wait_until "a network namespace, or why there is none" holder_is_in_or_ended "$holder_pid"
	! process_ended "$holder_pid" || skip "no network namespaces here: $*"
}

holder_is_in_or_ended() {
	process_ended "$1" ||
		{ [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ] &&
		[ "$(cat "/proc/$1/comm")" = sleep ]; }
}

# Who is not root is root of a user namespace around them.
wires_up() {
	local n user=()

	requires unshare --help
	requires ip -V
	[ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)
	holder unshare "${user[@]}" --net
	CLIENT_NET="nsenter --net=/proc/$holder_pid/ns/net"
	[ ${#user[@]} -eq 0 ] ||
		CLIENT_NET="nsenter --user=/proc/$holder_pid/ns/user --preserve-credentials ${CLIENT_NET#* }"
	# shellcheck disable=SC2086 # words
	holder $CLIENT_NET unshare --net
	SERVER_NET="${CLIENT_NET% *} --net=/proc/$holder_pid/ns/net"
	NBDKIT_PREFIX=$CLIENT_NET
	export NBDKIT_PREFIX
	in_client ip link add cable1 type bridge || skip "no bridges here"
	in_client ip link del cable1
	in_client ip link set lo up
	in_server ip link set lo up
	for n in 1 2; do
		# Which packets look like a storm, or a loop, is not this bridge's question.
		in_client ip link add cable$n type bridge stp_state 0 mcast_snooping 0
		in_client ip link add net$n type veth peer name port$n
		in_client ip link add far$n type veth peer name net$n netns "$holder_pid"
		in_client ip link set port$n master cable$n
		in_client ip link set far$n master cable$n
		in_client ip addr add 10.77.$n.1/24 dev net$n
		in_server ip addr add 10.77.$n.2/24 dev net$n
		in_client ip link set port$n up
		in_client ip link set far$n up
		in_client ip link set cable$n up
		in_client ip link set net$n up
		in_server ip link set net$n up
	done
}

# shellcheck disable=SC2086 # words
in_client() { $CLIENT_NET "$@"; }
# shellcheck disable=SC2086 # words
in_server() { $SERVER_NET "$@"; }

pull() { in_client ip link set "far$1" nomaster; }
plug() { in_client ip link set "far$1" master "cable$1"; }

# ---- programs ----

serve() {
	SERVER_PREFIX=$SERVER_NET start_server --listen tcp://10.77.1.2:1234 \
		--listen tcp://10.77.2.2:1234 "$@"
}

connect() {
	start_nbdkit "server=10.77.1.2:1234" "path=10.77.2.1@10.77.2.2:1234" \
		"heartbeat=$HEARTBEAT_MS" \
		"heartbeat-misses=$HEARTBEAT_MISSES" connections=2 "$@"
	wait_until "both paths" paths_up 2
}

# The client's connections that carry requests, and the one for control, are three for each path.
tcp_of() {
	in_client ss -H -t -n state established "dst 10.77.$1.2"
}

path_is_up() {
	[ "$(tcp_of "$1" | wc -l)" -ge 3 ]
}

paths_up() {
	path_is_up 1 && path_is_up "$1"
}

# bytes N: that the client has sent and received over cable N.
bytes() {
	# Some awks print what has more than 31 bits as 4.2e+09.
	# shellcheck disable=SC2016 # awk's
	in_client awk -v "name=net$1:" '$1 == name { printf "%.0f\n", $2 + $10 }' /proc/net/dev
}

bytes_above() {
	[ "$(bytes "$1")" -gt "$2" ]
}

# carries N: until requests go over cable N, which heartbeats are not.
carries() {
	wait_until "requests over cable $1" bytes_above "$1" $(($(bytes "$1") + 1000000))
}

# ---- load ----

metronome=			# its process; empty: none runs
# metronome: naps of 10 ms until SIGTERM; tells by how many ms it was woken too late, at most.
metronome() {
	python3 -c '
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
latest, last = 0, time.monotonic()
while not signal.sigtimedwait([signal.SIGTERM], 0.01):
    now = time.monotonic()
    latest, last = max(latest, now - last - 0.01), now
print(round(1000 * max(latest, time.monotonic() - last - 0.01)))' >"$tmp/metronome" &
	metronome=$!
	cleanup_fn load_kill "$metronome"
}

# load_begin [FIO-OPTION...]: 4k writes at depth 32 all over the first 8 MiB, read back and
# verified, again and again.
load_begin() {
	rm -f "$tmp/load.json"
	(cd "$tmp" &&
		exec fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite --bs=4k --size=8M \
			--iodepth=32 \
		--loops=1000000 --verify=crc32c --verify_backlog=256 --verify_state_save=0 \
		--verify_fatal=1 --verify_dump=0 \
		--randrepeat=0 --eta=never --output-format=json --output=load.json "$@") \
		>"$tmp/load.log" 2>&1 &
	load=$!
	cleanup_fn load_kill "$load"
	metronome
}

load_kill() {
	process_ended "$1" || kill_process "$1"
}

# A request and its reply are handed on ten times, between programs, their threads and heartbeats.
# Each of these waits for a processor as the metronome does.
HANDED_ON=10

# load_end MS: no error, no other data than was written, and no request took longer than MS, and
# than the machine adds to it.  Sets stall_ms.
load_end() {
	local late_ms=0 most_ms

	kill -INT "$load"
	# What fio ends with when it was told to, and all was well.
	expect_exit "$load" 128
	stall_ms=$(python3 - "$tmp/load.json" <<'END'
import json, sys
with open(sys.argv[1]) as f:
    text = f.read()
job = json.loads(text[text.index("{"):])["jobs"][0]
assert job["error"] == 0
kinds = [job[kind] for kind in ("read", "write", "sync")]
assert all(kind["total_ios"] for kind in kinds[:2])
print(max(kind["lat_ns" if kind is kinds[2] else "clat_ns"]["max"] for kind in kinds) // 1000000)
END
	)
	if [ -n "$metronome" ]; then
		kill -TERM "$metronome"
		expect_exit "$metronome" 0
		late_ms=$(cat "$tmp/metronome")
	fi
	most_ms=$(($1 + HANDED_ON * late_ms))
	echo "longest request: $stall_ms ms, of at most $1 + $HANDED_ON * $late_ms ms"
	[ "$stall_ms" -le $most_ms ] || fail "a request took $stall_ms ms, of at most $most_ms"
}
