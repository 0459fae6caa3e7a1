#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run a script inside a QEMU guest that has an RDMA device (soft-RoCE) and sees this machine's
# files.
#
#	run.sh [--kernel 7.3|6.12|6.1] [--timeout S] [--smp N] [--mem SIZE] [--nics N]
#		[--clock host|instructions] [--results DIR] SCRIPT [ARG...]
#
# SCRIPT runs as root with bash in the current directory; what it writes goes to memory and is gone
# with the guest, except below /run/guest, which is DIR here.  Its output is printed and its exit
# status is ours.  125: the guest itself failed; its console is printed then.  77: there is no
# kernel and it cannot be had.  $GUEST_CACHE holds the kernels (prepare.sh); made when they are
# missing.
set -eu -o pipefail

# shellcheck source=tests/guest/qemu.sh
. "$(dirname "${BASH_SOURCE[0]}")/qemu.sh"
kernel=6.12 guest_clock=host timeout=120 smp=${GUEST_SMP:-2} mem=${GUEST_MEM:-2G} nics=1 results=
while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$2; shift 2 ;;
	--timeout) timeout=$2; shift 2 ;;
	--smp) smp=$2; shift 2 ;;
	--mem) mem=$2; shift 2 ;;
	--nics) nics=$2; shift 2 ;;
	--clock)
		case $2 in host | instructions) ;; *) echo "run.sh: no such clock: $2" >&2; exit 2 ;; esac
		guest_clock=$2
		shift 2
		;;
	--results) results=$2; shift 2 ;;
	-*) echo "run.sh: unknown option: $1" >&2; exit 2 ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || { echo "run.sh: no script given" >&2; exit 2; }

guest_prepare "$kernel"
remove=
if [ -z "$results" ]; then
	results=$(mktemp -d /tmp/rtrs-guest.XXXXXX)
	remove=$results
fi

guest_pid=
# Not before the guest has gone: it writes there.
end() {
	[ -z "$guest_pid" ] || { kill "$guest_pid" && wait "$guest_pid"; } 2>/dev/null || true
	[ -z "$remove" ] || rm -rf "$remove"
}
trap end EXIT
trap 'exit 143' TERM INT HUP

options=(-smp "$smp" -m "$mem")
for ((i = 0; i < nics; i++)); do
	options+=(-netdev "user,id=n$i,restrict=on" -device "virtio-net-pci,netdev=n$i,romfile=")
done
for try in 1 2; do
	guest_start "$results" 1 "$timeout" "${options[@]}" -- "$@"
	status=0
	wait "$guest_pid" || status=$?
	guest_pid=
	[ $try -eq 1 ] && [ $status -ne 124 ] && guest_died_booting "$results" || break
done

[ ! -f "$results/out.log" ] || cat "$results/out.log"
if [ -f "$results/status" ]; then
	exit "$(cat "$results/status")"
fi
{
	[ "$status" -ne 124 ] || echo "run.sh: not done after $timeout s"
	echo "run.sh: the guest failed (qemu: $status); its console:"
	cat "$results/qemu.log" "$results/console.log"
} >&2 || true
exit 125
