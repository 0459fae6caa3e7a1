#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a write that crosses the end of an image is EINVAL, as one that begins there, and a range that rbd_discard()
# took reads zeroes.  With librbd 16.2:
# - rbd_aio_write() of 8192 bytes from 4096 in front of the end returns 0, and half of the data is nowhere; rbd_write()
#   returns 4096.  Who has the size of an image that another client has cut loses data so, without an error.
# - rbd_discard() returns 0, and leaves each part that is no whole 64 KiB at a multiple of 64 KiB; rbd_write_zeroes()
#   leaves none.
. "$(dirname "$0")/common.sh"

ceph=16.2.15+ds-0+deb12u2
packages bookworm ceph-mon=$ceph ceph-osd=$ceph ceph-common=$ceph python3-rbd=$ceph
root=$tmp/bookworm
cat >"$root/ceph.conf" <<'END'
[global]
fsid = 8c9b7a57-3f57-4d5c-9a52-0d7c1a3b6a11
mon host = 127.0.0.1
public addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
mon allow pool size one = true
osd pool default pg autoscale mode = off
run dir = /cluster
pid file = /cluster/$type.pid
admin socket = /cluster/$cluster-$name.$pid.asok
log file = /cluster/$type.log
mon data = /cluster/mon
osd data = /cluster/osd
osd objectstore = memstore
memstore device bytes = 268435456
END
cat >"$root/program.py" <<'END'
import rados
import rbd

cluster = rados.Rados(conffile='/ceph.conf')
cluster.connect()
pool = cluster.open_ioctx('rbd')
size = 1 << 20
rbd.RBD().create(pool, 'disk', size)
disk = rbd.Image(pool, 'disk')


def write(at):
    done = disk.aio_write(b'x' * 8192, at, lambda _: None)
    done.wait_for_complete_and_cb()
    return done.get_return_value()


print('across the end', write(size - 4096), 'at the end', write(size), end='; ')
try:
    disk.write(b'x' * 8192, size - 4096)
except rbd.IncompleteWriteError as e:
    print(e)
disk.resize(2 * size)
print('beyond the old end:', set(disk.read(size, 4096)))
for at, length in (0, 4096), (0, 65536), (32768, 65536), (32768, 131072):
    for name in 'discard', 'write_zeroes':
        disk.write(b'x' * size, 0)
        getattr(disk, name)(at, length)
        print(name, at, length, 'leaves', disk.read(at, length).count(b'x'), end='; ')
print()
END
cat >"$root/start" <<'END'
set -eu
export CEPH_CONF=/ceph.conf
mkdir -p /cluster/mon /cluster/osd
monmaptool --create --fsid "$(sed -n 's/^fsid = //p' ceph.conf)" --addv a '[v2:127.0.0.1:3300,v1:127.0.0.1:6789]' /monmap
ceph-mon -i a --mkfs --monmap /monmap
ceph-mon -i a
uuid=$(cat /proc/sys/kernel/random/uuid)
ceph osd new "$uuid"
ceph-osd -i 0 --mkfs --osd-uuid "$uuid"
ceph-osd -i 0
ceph osd pool create rbd 8
timeout 200 rados -p rbd put ready /ceph.conf
END
# Namespaces of its own: the ports are free, and the daemons end with them.
seen=$(unshare --net --pid --fork --mount bash -c "
	ip link set lo up
	mount --bind /dev '$root/dev'
	mount -t proc proc '$root/proc'
	chroot '$root' bash /start >'$tmp/log' 2>&1 && CEPH_CONF=/ceph.conf chroot '$root' python3 /program.py") ||
	{ tail -n 20 "$tmp/log"; exit 1; }
expect "librbd" "$seen" \
"across the end 0 at the end -22; RBD incomplete write (Wrote only 4096 out of 8192 bytes)
beyond the old end: {0}
discard 0 4096 leaves 4096; write_zeroes 0 4096 leaves 0; discard 0 65536 leaves 0; write_zeroes 0 65536 leaves 0; \
discard 32768 65536 leaves 65536; write_zeroes 32768 65536 leaves 0; \
discard 32768 131072 leaves 65536; write_zeroes 32768 131072 leaves 0; "
