#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: rdma_getaddrinfo(3) resolves a name or an address as getaddrinfo(3) does, whatever devices the machine has, so
# a program may resolve first, and then look for a device, or go on over TCP.  librdmacm 44 and 56 ask for the devices
# before they look at the name: without any device even the address 127.0.0.1 is ENODEV, with RAI_PASSIVE and
# RAI_NUMERICHOST, too.  The manual does not name the error.
# Needs root, mmdebstrap, and a machine without an RDMA device.
. "$(dirname "$0")/common.sh"

[ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || skip "this machine has an RDMA device"

# names SUITE GCC-VERSION LIBC-VERSION LIBRARY-VERSION
names() {
	packages "$1" "gcc=$2" "libc6-dev=$3" "librdmacm-dev=$4"
	cp "$here/librdmacm-names.c" "$tmp/$1/tmp/names.c"
	chroot "$tmp/$1" gcc -O1 -o /tmp/names /tmp/names.c -lrdmacm
	expect "$1" "$(unshare --mount bash -c "mount --rbind /sys '$tmp/$1/sys' && chroot '$tmp/$1' /tmp/names")" \
"getaddrinfo: resolved
rdma_getaddrinfo: No such device
passive: No such device
numeric: No such device"
}
names bookworm 4:12.2.0-3 2.36-9+deb12u14 44.0-2
names trixie 4:14.2.0-1 2.41-12+deb13u5 56.1-1
