#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=900 full
# A virtual machine whose only disk is the gateway's socket: it boots with its root file system
# there, reads and writes files, sees the disk grow as rtrs-guide(7) says, and powers off; what it
# has left on the server's file is whole.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/qemu.sh"
requires_server; requires_plugin
requires socat -V
guest_prepare 6.12
kv=$(cat "$guest_kernel/kv")

# Its initramfs: that of guests, whose modules for virtio it loads too, with another init.
mkdir -p "$tmp/init/more"
for module in virtio_blk ext4 crc32c_generic; do
	modprobe -d "$guest_kernel" -S "$kv" --show-depends $module
done | sed -n 's/^insmod \(.*\.ko\(\.xz\)\{0,1\}\).*/\1/p' | awk '!seen[$0]++' >"$tmp/modules"
n=10
while read -r ko; do
	n=$((n + 1))
	case $ko in
	*.xz) xz -dc "$ko" >"$tmp/init/more/$n.ko" ;;
	*) cp "$ko" "$tmp/init/more/$n.ko" ;;
	esac
done <"$tmp/modules"
cat >"$tmp/init/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
for m in /modules/*.ko /more/*.ko; do
	# One is for another processor.
	insmod "$m" 2>/dev/null
done
mount -t ext4 /dev/vda /new && exec switch_root /new /sbin/init
echo "the machine finds no root"
poweroff -f
END
chmod +x "$tmp/init/init"
{
	cat "$guest_kernel/initramfs.gz"
	( cd "$tmp/init" && find . -type f -o -name more | cpio --quiet -o -H newc -R 0:0 |
		gzip -1 )
} >"$tmp/initrd"

# Its root: busybox, an init, and files of all sizes.
root=$tmp/root
mkdir -p "$root"/{bin,sbin,proc,sys,dev,data/given}
gzip -dc "$guest_kernel/initramfs.gz" | ( cd "$root" && cpio --quiet -i bin/busybox )
ln -s busybox "$root/bin/sh"
cat >"$root/sbin/init" <<'END'
#!/bin/sh
fail() {
	echo "the machine failed: $*"
	/bin/busybox poweroff -f
}
/bin/busybox --install -s /bin || fail install
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
cd /data || fail data
sha256sum -c sums >/dev/null || fail "files are not as they were given"
cp -r given copies && dd if=/dev/urandom of=random bs=64k count=200 && sync || fail write
rm copies/small-1*
i=0
while [ $i -lt 20 ]; do
	i=$((i + 1))
	echo $i >>log && sync || fail log
done
find copies random log -type f | sort | xargs sha256sum >written || fail sums
echo 3 >/proc/sys/vm/drop_caches
sha256sum -c written >/dev/null || fail "files are not as they were written"
mount -o remount,ro / || fail remount
echo "the machine waits for a larger disk"
while [ "$(cat /sys/block/vda/size)" -eq 131072 ]; do
	sleep 0.1
done
[ "$(cat /sys/block/vda/size)" -eq 196608 ] || fail "a size of $(cat /sys/block/vda/size)"
yes grown | dd of=/dev/vda bs=1M seek=64 count=32 iflag=fullblock oflag=direct || fail "write behind the old end"
echo "the machine is done"
poweroff -f
END
chmod +x "$root/sbin/init"
cp -r "$top_srcdir/man" "$top_srcdir/src" "$root/data/given"
for i in $(seq 30); do
	head -c $((i * 777)) /dev/urandom >"$root/data/given/small-$i"
done
random_file "$root/data/given/large" 5000001
( cd "$root/data" && find given -type f -print0 | sort -z | xargs -0 sha256sum >sums )
truncate -s 64M "$tmp/disk"
mke2fs -q -F -t ext4 -d "$root" "$tmp/disk"

start_server disk="$tmp/disk"
start_nbdkit 127.0.0.1:"$server_port" export=disk
setpriv --pdeathsig KILL \
	qemu-system-x86_64 -accel tcg -cpu qemu64,-cx16 -m 256M \
	-nographic -nodefaults -no-reboot \
	-serial "file:$tmp/console.log" -kernel "$guest_kernel/vmlinuz" -initrd "$tmp/initrd" \
	-append "console=ttyS0 quiet panic=-1 no_timer_check" \
	-qmp "unix:$tmp/qmp,server=on,wait=off" \
	-blockdev "driver=nbd,node-name=net0,server.type=unix,server.path=$sock,export=disk" \
	-blockdev driver=raw,node-name=disk0,file=net0 \
	-device virtio-blk-pci,drive=disk0,romfile= </dev/null >"$tmp/qemu.log" 2>&1 &
qemu_pid=$!
cleanup_fn kill_process "$qemu_pid"
# As long as it takes, here and below: the limit is that of the test.
until grep -q '^the machine waits for a larger disk' "$tmp/console.log"; do
	kill -0 "$qemu_pid" || fail "the machine did not come so far"
	sleep 0.2
done
truncate -s 96M "$tmp/disk"
"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" export resize disk
cat >"$tmp/grow.qmp" <<END
{"execute":"qmp_capabilities"}
{"execute":"blockdev-add","arguments":{"driver":"nbd","node-name":"net1","export":"disk",
  "server":{"type":"unix","path":"$sock"}}}
{"execute":"blockdev-reopen","arguments":{"options":[{"driver":"raw","node-name":"disk0","file":"net1"}]}}
{"execute":"block_resize","arguments":{"node-name":"disk0","size":100663296}}
END
socat -t "$TIMEOUT_S" - "UNIX-CONNECT:$tmp/qmp" <"$tmp/grow.qmp" >"$tmp/answers"
cat "$tmp/answers"
must_fail grep '"error"' "$tmp/answers"
wait "$qemu_pid" || fail "QEMU ended with status $?"
grep -q '^the machine is done' "$tmp/console.log" || fail "the machine did not come to its end"
stop_process "$nbdkit_pid"
stop_server "$server_pid"

# What the machine has written behind the old end.
[ "$(stat -c %s "$tmp/disk")" -eq $((96 << 20)) ]
tail -c $((32 << 20)) "$tmp/disk" | cmp - <(yes grown | head -c $((32 << 20)))
fsck.ext4 -f -n "$tmp/disk"
mkdir "$tmp/out"
debugfs -R "rdump /data $tmp/out" "$tmp/disk"
cd "$tmp/out/data" || exit
sha256sum --quiet -c sums
sha256sum --quiet -c written
cmp sums "$root/data/sums"
[ "$(wc -l <log)" -eq 20 ]
[ "$(stat -c %s random)" -eq $((200 << 16)) ]
diff -r --exclude='small-1*' given copies
[ ! -e copies/small-1 ] || fail "a file that was removed is there"
