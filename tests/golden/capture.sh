#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Record what the kernel's rnbd-client and rnbd-server say to each other: two guests, one cable,
# once with always_invalidate=Y and once with N.  Run it in the top source directory:
#
#	tests/golden/capture.sh FILE.pcap [7.3|6.12|6.1]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/guest/qemu.sh
. "$here/../guest/qemu.sh"
[ $# -ge 1 ] || { echo "usage: capture.sh FILE.pcap [7.3|6.12|6.1]" >&2; exit 2; }
pcap=$(realpath "$1")
guest_prepare "${2:-6.12}"
tmp=$(mktemp -d /tmp/rtrs-golden.XXXXXX)
server='' client=''
end() {
	[ -z "$server" ] || kill "$server" || true
	[ -z "$client" ] || kill "$client" || true
	wait
	rm -rf "$tmp"
} 2>/dev/null
trap end EXIT
trap 'exit 143' TERM INT HUP

# await FILE: while both guests run.
await() {
	until [ -e "$1" ]; do
		kill -0 "$server" && kill -0 "$client" ||
			{ cat "$tmp"/*/out.log; echo "no $1" >&2; exit 1; }
		sleep 0.1
	done
}

nic() {
	options=(-smp 1 -m 1G
		-netdev "stream,id=a,server=$1,addr.type=unix,addr.path=$tmp/cable"
		-device "virtio-net-pci,netdev=a,mac=52:54:00:00:01:0$2,romfile=")
}

nic on 1
guest_start "$tmp/server" 1 400 "${options[@]}" -- "$here/peers.sh" server
server=$guest_pid
until [ -S "$tmp/cable" ]; do sleep 0.1; done
nic off 2
guest_start "$tmp/client" 2 400 "${options[@]}" -object "filter-dump,id=f,netdev=a,file=$pcap" -- \
	"$here/peers.sh" client
client=$guest_pid

for invalidate in Y N; do
	await "$tmp/server/up.$invalidate"
	touch "$tmp/client/go.$invalidate"
	await "$tmp/client/done.$invalidate"
	touch "$tmp/server/end.$invalidate"
done
wait "$client" "$server"
client='' server=''
cat "$tmp"/*/out.log
for side in client server; do
	[ "$(cat "$tmp/$side/status")" = 0 ] || { echo "$side failed" >&2; exit 1; }
done
