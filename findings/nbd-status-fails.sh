#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: BLOCK_STATUS is a hint that saves reads, so a copy of an export whose BLOCK_STATUS fails reads everything.
# nbdcopy 1.22, --allocated included, and qemu-img 10.0 end with the error and copy nothing, although each READ succeeds.
# So a server that cannot tell has to call all of it data.
. "$(dirname "$0")/common.sh"

packages trixie nbdkit=1.42.3-1 libnbd-bin=1.22.2-1+b1 qemu-utils=1:10.0.13+ds-0+deb13u1
cat >"$tmp/trixie/program" <<'END'
cd /tmp
# copy NAME COMMAND...: with NBD's URI for URI
copy() {
	rm -f copy
	if "${@:2}" >log 2>&1 && cmp -s data copy; then
		echo "$1: copied"
	else
		echo "$1: $(sed -n 's/.*: \([^:]*[Ee]rror\).*/\1/p' log | head -n 1)"
	fi
}
head -c 1M /dev/urandom >data
for rate in 0 100; do
	echo "BLOCK_STATUS fails: $rate%"
	nbdkit -U /tmp/$rate -P pid --filter=error file data error-extents=EIO error-extents-rate=$rate%
	timeout 60 sh -c "until [ -s pid ]; do sleep 0.1; done"
	uri="nbd+unix:///?socket=/tmp/$rate"
	copy nbdcopy nbdcopy "$uri" copy
	copy 'nbdcopy --allocated' nbdcopy --allocated "$uri" copy
	copy qemu-img qemu-img convert -f raw -O raw "$uri" copy
	kill "$(cat pid)"
	rm pid
done
END
expect "seen" "$(chroot "$tmp/trixie" bash /program)" \
"BLOCK_STATUS fails: 0%
nbdcopy: copied
nbdcopy --allocated: copied
qemu-img: copied
BLOCK_STATUS fails: 100%
nbdcopy: Input/output error
nbdcopy --allocated: Input/output error
qemu-img: Input/output error"
