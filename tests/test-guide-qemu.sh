#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The section of rtrs-guide(7) about disks of running virtual machines, typed as it is printed: a
# disk grows, and moves to another server, in a QEMU whose guest does not run; what a guest would
# write goes through an NBD export of the same node.
. "$(dirname "$0")/guide-machine.sh"
requires qemu-system-x86_64 --version
requires qemu-io --version
requires socat -V

/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$guide" qemu "$tmp" >"$tmp/commands"
cat "$tmp/commands"

# sizes NODE...: of nodes of QEMU, a line each; none for a node that is not there.
sizes() {
	printf '%s\n' '{"execute":"qmp_capabilities"}' \
		'{"execute":"query-named-block-nodes","arguments":{"flat":true}}' |
		socat -t "$TIMEOUT_S" - "UNIX-CONNECT:$tmp/run/vm0.qmp" >"$tmp/nodes"
	/usr/bin/python3 - "$tmp/nodes" "$@" <<'END'
import json, sys
answer = [json.loads(line) for line in open(sys.argv[1]) if "node-name" in line][-1]
sizes = {node["node-name"]: node["image"]["virtual-size"] for node in answer["return"]}
print(*(sizes[name] for name in sys.argv[2:] if name in sizes))
END
}

# nodes_are WANTED NODE...
nodes_are() {
	[ "$(sizes "${@:2}")" = "$1" ]
}

# guest COMMAND: qemu-io in the place of the guest, at the node that the guest has, once there is an
# export of it.
guest_uri="nbd+unix:///vm0?socket=$tmp/run/vm0.sock"
guest() {
	timeout "$TIMEOUT_S" qemu-io -f raw -c "$1" "$guest_uri" >"$tmp/io.out" 2>&1 ||
		fail "qemu-io $1: $(cat "$tmp/io.out")"
	must_fail grep -q -i -E 'fail|error|mismatch' "$tmp/io.out"
}

# asks COMMAND: type a command that asks QEMU, and print the answers, of which none is an error.
asks() {
	timeout "$((TIMEOUT_S + 5))" bash -c "$1" >"$tmp/answers" || fail "$1"
	cat "$tmp/answers"
	must_fail grep '"error"' "$tmp/answers"
}

is_ready() {
	asks "$1"
	grep -q '"ready": true' "$tmp/answers"
}

cd "$tmp" || exit 1
known=0
while IFS= read -r word <&3; do
	eval "command=$word"
	case $command in
	mkdir* | truncate* | "cat > "*) bash -c "$command" ;;
	"rtrs-server --name "*) serves "$command" ;;
	"rtrs-nbd "*) started "$command" ;;
	"rtrsctl "*) timeout "$TIMEOUT_S" bash -c "$command" ;;
	"qemu-system-x86_64 "*)
		# The guest does not run, and its writer is another one.
		bash -c "${command/drive=disk0/drive=disk0,share-rw=on} -S -nodefaults -accel tcg" \
			</dev/null
		wait_until "QEMU" test -s "$tmp/run/vm0.pid"
		cleanup_fn stop_daemon "$(cat "$tmp/run/vm0.pid")"
		guest 'write -P 1 0 16M'
		;;
	"socat "*grow.qmp)
		nodes_are "1073741824 1073741824" net0 disk0
		asks "$command"
		nodes_are "2147483648 2147483648" net0 net1 disk0
		guest 'write -P 2 16M 4M'
		;;
	"socat "*move.qmp)
		cat >"$tmp/export.qmp" <<END
{"execute":"qmp_capabilities"}
{"execute":"nbd-server-start","arguments":{"addr":{"type":"unix","data":{"path":"$tmp/run/guest.sock"}}}}
{"execute":"block-export-add","arguments":{"type":"nbd","id":"guest","node-name":"disk0","name":"guest","writable":true}}
END
		asks "socat -t 5 - UNIX-CONNECT:$tmp/run/vm0.qmp <$tmp/export.qmp"
		guest_uri="nbd+unix:///guest?socket=$tmp/run/guest.sock"
		asks "$command"
		guest 'write -P 3 20M 4M'
		;;
	printf*query-block-jobs*) wait_until "the copy" is_ready "$command" ;;
	"socat "*finish.qmp)
		guest 'write -P 4 24M 4M'
		asks "$command"
		wait_until "the end of the job" nodes_are "2147483648 2147483648" disk0 disk1
		;;
	"socat "*close.qmp)
		asks "$command"
		nodes_are 2147483648 disk0 net1 disk1
		;;
	"virsh "*)
		echo "test-libvirt.sh runs it, with a libvirtd"
		grep -q "guide-commands.py.* qemu " "$top_srcdir/tests/guest/test-libvirt.sh"
		;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $command" ;;
	esac
	known=$((known + 1))
done 3<"$tmp/commands"
[ $known -eq "$(wc -l <"$tmp/commands")" ]
[ $known -ge 17 ]

# Behind the move only the new server has what the guest writes.
guest 'write -P 5 28M 4M'
guest flush
for i in 1 2 3 4 5; do
	case $i in 1) at=0 len=16 ;; *) at=$((8 + 4 * i)) len=4 ;; esac
	guest "read -P $i ${at}M ${len}M"
	qemu-io -f raw -r -c "read -P $i ${at}M ${len}M" "$tmp/srv/vm0-moved.img" >"$tmp/io.out"
	must_fail grep -q -i -E 'fail|error|mismatch' "$tmp/io.out"
done
qemu-io -f raw -r -c "read -P 0 28M 4M" "$tmp/srv/vm0.img" >"$tmp/io.out"
must_fail grep -q -i -E 'fail|error|mismatch' "$tmp/io.out"
# Before the gateways: QEMU flushes, and would wait for them.
stop_daemon "$(cat "$tmp/run/vm0.pid")"
