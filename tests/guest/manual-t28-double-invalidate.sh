#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Not a part of any check: a peer invalidates one key twice, which is expected to stop a kernel with
# soft-RoCE (frwr.h, "A double invalidate").  In the build directory, with $GUEST_CACHE as for make
# check-guest:
#
#	.../tests/guest/manual-t28-double-invalidate.sh [7.3|6.12|6.1]
#
# Boots a guest of its own.  Succeeds when the guest dies as expected; one that survives has a
# kernel to take FRWR_QUIRK_INV_FATAL back for (frwr-map.c), and provider_peer_inv_checked
# (tests/fabric/main-verbs.c).
set -eu -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ "${1-}" = inside ]; then
	# At once, not when something needs what is locked.
	echo 1 >/proc/sys/kernel/panic_on_oops
	FRWR_DOUBLE_INVALIDATE=1 FABRIC_ADDRESS=10.1.0.1 exec ./tests/frwr/frwr-device-verbs rdma \
		t28
fi

kernel=${1-6.12}
[ -x ./tests/frwr/frwr-device-verbs ] ||
	{ echo "no tests/frwr/frwr-device-verbs here: make check TESTS= in the build directory"; exit 2; }
results=$(mktemp -d /tmp/rtrs-guest.XXXXXX)
trap 'rm -rf "$results"' EXIT
status=0
bash "$here/run.sh" --kernel "$kernel" --timeout 120 --results "$results" "$here/${0##*/}" inside \
	>"$results/run.log" 2>&1 || status=$?
case $status in
125)
	# Where it is, or what was called from there.
	if grep -a -m 1 'rxe_invalidate_mw' "$results/console.log" &&
		grep -a 'Kernel panic' "$results/console.log"; then
		echo "the guest's kernel ($kernel) died of it, as expected"
		exit 0
	fi
	;;
77)
	cat "$results/run.log"
	exit 77
	;;
esac
cat "$results/run.log"
echo "not as expected (status $status): see at the head of $0"
exit 1
