#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The USDT probes are there, the manual and the scripts of contrib/ name those that are, and the
# scripts see requests.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires readelf --version
requires nbdsh --version
[ -e /usr/include/sys/sdt.h ] || [ -e "/usr/include/$(gcc -dumpmachine)/sys/sdt.h" ] ||
	skip "no sys/sdt.h: built without probes"

server=$RTRS_SERVER
[ -e "${server%/*}/.libs/${server##*/}" ] && server=${server%/*}/.libs/${server##*/}
probes() {
	readelf -n "$1" |
		awk '$1 == "Provider:" && $2 == "rtrs" { p = 1 } $1 == "Name:" && p { print $2; p = 0 }' | sort -u
}
probes "$server" >"$tmp/server"
probes "$RTRS_PLUGIN" >"$tmp/plugin"
gateway=$RTRS_NBD
[ -e "${gateway%/*}/.libs/${gateway##*/}" ] && gateway=${gateway%/*}/.libs/${gateway##*/}
named() {
	sed -n 's/^usdt:.*:rtrs:\([a-z_]*\)$/\1/p' "$top_builddir/contrib/$1" | sort -u
}
diff "$tmp/server" <(named rtrs-server-stages.bt)
diff "$tmp/plugin" <(named rtrs-plugin-requests.bt)
diff "$tmp/plugin" <(probes "$gateway")
diff "$tmp/plugin" <(named rtrs-nbd-requests.bt)
while IFS= read -r probe; do
	grep -q "C<$probe>" "$top_srcdir/man/rtrsctl.pod"
done < <(cat "$tmp/server" "$tmp/plugin")

[ -z "${VALGRIND_TESTS-}" ] || skip "a probe that is on ends a program in valgrind"
requires bpftrace --version
[ -e /sys/kernel/tracing/uprobe_events ] && bpftrace -e 'BEGIN { exit(); }' ||
	skip "no uprobes here: the probes are there, and tests/guest/test-probes-seen.sh looks at them"
truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

# A tracer may need long to attach, longer in a guest without KVM.
TIMEOUT_S=$((3 * TIMEOUT_S))
# view MAP...: whether the tracer has printed each, of requests of now or before.
view() {
	local map

	nbdsh_run "$uri" <<END
for i in range(2000):
    h.pwrite(b"x" * 512, 512 * (i % 1000))
END
	for map in "$@"; do
		grep -qF "$map" "$tmp/out" || return 1
	done
}

# sees SCRIPT FILE PID MAP...: with IO under way it prints each MAP, here each second: at its end
# bpftrace takes long to detach, and may look for events for minutes.
sees() {
	local script=$1 file=$2 pid=$3 map tracer
	shift 3
	# bpftrace knows no way to write a path with a space.
	ln -sf "$file" "$tmp/traced"
	sed "s|^usdt:[^:]*:|usdt:$tmp/traced:|" "$top_builddir/contrib/$script" >"$tmp/$script"
	for map in "$@"; do
		echo "interval:s:1 { print(${map%%[*}); }"
	done | sort -u >>"$tmp/$script"
	bpftrace -B line -p "$pid" "$tmp/$script" >"$tmp/out" 2>&1 &
	tracer=$!
	cleanup_fn kill_process $tracer
	# bpftrace 0.17 says "Attaching" on stdout, 0.27 "Attached" on stderr.
	wait_line "$tmp/out" "Attach(ing|ed)"
	wait_until "a view of $file" view "$@"
	kill_process $tracer
}

# The comment of the script has the numbers of the stages.
storage=$(sed -n 's/.* \([0-9]*\) storage,.*/\1/p' "$top_builddir/contrib/rtrs-server-stages.bt")
sees rtrs-server-stages.bt "$server" "$server_pid" "@us[1]" "@us[$storage]"
sees rtrs-plugin-requests.bt "$RTRS_PLUGIN" "$nbdkit_pid" "@queued" "@server" "@ends"
stop_process "$nbdkit_pid"
start_gateway "server=127.0.0.1:$server_port" export=disk
sees rtrs-nbd-requests.bt "$gateway" "$gateway_pid" "@queued" "@server" "@ends"
