#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The guest after init: brings up the devices and soft-RoCE, runs the job that run.sh or rack.sh
# left in the shared folder, leaves its exit status there and powers off.
#
# Interface N of the guest gets 10.(N+1).0.ID/24 and the RDMA device rxeN; ID is 1 or 2 of a rack, 1
# alone.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root

finish() {
	sync
	poweroff -f 2>/dev/null || echo o >/proc/sysrq-trigger
}
trap finish EXIT

mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/pts /run/guest
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t 9p -o trans=virtio,version=9p2000.L,rw,msize=1048576,cache=none results /run/guest ||
	exit 1
mount -t configfs configfs /sys/kernel/config 2>/dev/null
ln -sf /proc/self/fd /dev/fd

touch /run/guest/booted
# shellcheck source=/dev/null
. /run/guest/job
export GUEST_ID
kv=$(uname -r)
mkdir -p "/lib/modules/$kv"
mount --bind "$GUEST_KERNEL/lib/modules/$kv" "/lib/modules/$kv"
modprobe -a rdma_rxe ib_uverbs rdma_ucm || exit 1
ulimit -l unlimited
ip link set lo up
n=0
for dev in $(cd /sys/class/net && ls -d eth*); do
	n=$((n + 1))
	ip addr add "10.$n.0.$GUEST_ID/24" dev "$dev"
	ip -6 addr add "fd00:$n::$GUEST_ID/64" dev "$dev" nodad
	ip link set "$dev" up
	rdma link add "rxe$((n - 1))" type rxe netdev "$dev" || exit 1
done

# shellcheck disable=SC2153 # from job
cd "$GUEST_CWD" || exit 1
bash "${GUEST_JOB[@]}" >/run/guest/out.log 2>&1 </dev/null
echo $? >/run/guest/status
dmesg >/run/guest/dmesg.log
