#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compare an image of Ceph through rtrs-nbd and rtrs-server with qemu-nbd over librbd and with fio's
# own engine, on a monitor and an osd in user space (tests/ceph.sh), librbd's cache off everywhere.
# In the top build directory.  Options for run.py go behind.
#
# usage: rbd.sh [OPTION...]
. ./tests/functions.sh
. "$top_srcdir/tests/ceph.sh"
requires fio --enghelp=rbd
qemu-nbd --help | grep -q rbd: || ls /usr/lib/*/qemu/block-rbd.so ||
	fail "qemu-nbd has no rbd: install qemu-block-extra"
size_mib=${RBD_SIZE_MIB:-512}

TIMEOUT_S=$((4 * TIMEOUT_S))
ceph_start
printf 'rbd cache = false\n' | sed -i '/^\[global\]/r /dev/stdin' "$CEPH_CONF"
for name in rbd rbd-qemu rbd-limit; do
	image "bench-$name" "${size_mib}M"
	rbd_ bench --io-type write --io-size 4M --io-threads 4 --io-total "${size_mib}M" --io-pattern seq \
		"rbd/bench-$name"
done
export top_builddir
/usr/bin/python3 "$top_srcdir/bench/run.py" \
	--topologies=rbd,rbd-qemu,rbd-limit --size-mib="$size_mib" --rounds=6 \
	--rows=4k-randread-qd1,4k-randread-qd16,4k-randread-qd32,4k-randwrite-qd1,4k-randwrite-qd16,4k-randwrite-qd32,128k-\* \
	--csv="$top_builddir/bench-rbd.csv" "$@"
