#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=600 full
# A virtual machine of libvirt, as contrib/examples has it: it writes to a disk of rtrs-nbd while
# the gateway is upgraded and the server is killed and restarted, and reads back what it wrote.
# libvirtd runs here without systemd and AppArmor, in namespaces of its own, with the users of its
# package.
if [ -z "${IN_NAMESPACE-}" ]; then
	# The kernel may have to be fetched: there is no network below.
	. "$(dirname "$0")/qemu.sh"
	guest_prepare 6.1
	export IN_NAMESPACE=yes guest_kernel
	[ "$(id -u)" -ne 0 ] || ! unshare --mount --net --pid --fork true ||
		exec unshare --mount --net --pid --fork --kill-child --mount-proc "$BASH" "$0" "$@"
	export IN_NAMESPACE=no
fi
. ./tests/functions.sh
requires_server; requires_gateway; requires_root
[ "$IN_NAMESPACE" = yes ] || skip "no namespaces here"
requires virsh --version
requires libvirtd --version
requires id libvirt-qemu
requires /usr/bin/python3 --version
# Another user reads what is here.
chmod 755 "$tmp"
ip link set lo up
examples=$top_srcdir/contrib/examples

# ---- the places of libvirtd, and a group ----

mount -t tmpfs none /run
mkdir /run/nbd "$tmp/libvirt" "$tmp/libvirt/qemu"
for dir in /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
	mount -t tmpfs none $dir
done
# Without systemd there is neither a log daemon nor a place for control groups.
cat >"$tmp/libvirt/qemu.conf" <<'END'
security_driver = "none"
stdio_handler = "file"
cgroup_controllers = [ ]
namespaces = [ ]
END
mount --bind "$tmp/libvirt" /etc/libvirt
grep -v '^rtrs:' /etc/group >"$tmp/group"
echo 'rtrs:x:64999:' >>"$tmp/group"
mount --bind "$tmp/group" /etc/group

# ---- the virtual machine ----

# The examples are right for this libvirt, as they stand.
libvirtd >"$tmp/libvirtd.log" 2>&1 &
cleanup_fn stop_process $!
# It asks QEMU what it can, and again where QEMU was too slow.
answers() { virsh domcapabilities --virttype qemu --machine q35; }
wait_until "libvirtd, and what QEMU can" answers
virsh version
virsh define --validate "$examples/libvirt-commandline.xml"
virsh undefine vm0
machine=$examples/libvirt-commandline.xml
if virsh define --validate "$examples/libvirt.xml"; then
	machine=$examples/libvirt.xml
	virsh dumpxml vm0 | grep "<reconnect delay='86400'/>"
	virsh undefine vm0
else
	dpkg --compare-versions "$(virsh --version)" lt 11.3 ||
		fail "this libvirt has <reconnect>, and refuses the example"
	# What the comment of the example says.
	virsh define "$examples/libvirt.xml"
	must_fail grep reconnect <<<"$(virsh dumpxml vm0)"
	virsh undefine vm0
fi

# What the machine runs.  A byte on its console ends its writing.
mkdir -p "$tmp/init/more"
cat >"$tmp/init/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for m in /modules/*.ko /more/*.ko; do
	# One is for another processor.
	insmod "$m" 2>/dev/null
done
fail() { echo "the machine failed: $*"; poweroff -f; }
block() { yes "block $1" | head -c 65536; }
( read -r _ </dev/ttyS0; : >/stop ) &
n=0
while [ ! -e /stop ] && [ $n -lt 16000 ]; do
	n=$((n + 1))
	# All are on the disk when dd closes it; each eighth asks for a FLUSH, too.
	conv=notrunc
	[ $((n % 8)) -ne 0 ] || conv=fsync
	block $n | dd of=/dev/vda bs=65536 seek=$n iflag=fullblock conv=$conv 2>/dev/null ||
		fail "write $n"
	echo "wrote $n"
done
echo 3 >/proc/sys/vm/drop_caches
i=0
while [ $i -lt $n ]; do
	i=$((i + 1))
	[ "$(dd if=/dev/vda bs=65536 skip=$i count=1 2>/dev/null | sha256sum)" = \
		"$(block $i | sha256sum)" ] || fail "block $i is another one"
done
echo "read $n as written"
poweroff -f
END
chmod +x "$tmp/init/init"
kv=$(cat "$guest_kernel/kv") n=10
modprobe -d "$guest_kernel" -S "$kv" --show-depends virtio_blk |
	sed -n 's/^insmod \(.*\.ko\(\.xz\)\{0,1\}\).*/\1/p' >"$tmp/modules"
while read -r ko; do
	n=$((n + 1))
	case $ko in
	*.xz) xz -dc "$ko" >"$tmp/init/more/$n.ko" ;;
	*) cp "$ko" "$tmp/init/more/$n.ko" ;;
	esac
done <"$tmp/modules"
{
	cat "$guest_kernel/initramfs.gz"
	( cd "$tmp/init" && find . -type f -o -name more | cpio --quiet -o -H newc -R 0:0 |
		gzip -1 )
} >"$tmp/initrd"
cp "$guest_kernel/vmlinuz" "$tmp/vmlinuz"

# The example with another kernel and processor, and a console that this test reads.
/usr/bin/python3 - "$machine" "$tmp" >"$tmp/vm.xml" <<'END'
import sys, xml.etree.ElementTree as xml
xml.register_namespace("qemu", "http://libvirt.org/schemas/domain/qemu/1.0")
domain, tmp = xml.parse(sys.argv[1]).getroot(), sys.argv[2]
domain.set("type", "qemu")
domain.find("memory").attrib["unit"], domain.find("memory").text = "MiB", "256"
domain.find("vcpu").text = "1"
os = domain.find("os")
for boot in os.findall("boot"):
    os.remove(boot)
for name, text in (("kernel", tmp + "/vmlinuz"), ("initrd", tmp + "/initrd"),
                   ("cmdline", "console=ttyS0 quiet panic=-1 no_timer_check")):
    xml.SubElement(os, name).text = text
domain.append(xml.fromstring("""<cpu mode='custom' match='exact' check='none'>
    <model fallback='forbid'>qemu64</model><feature policy='require' name='rdrand'/>
    <feature policy='disable' name='cx16'/></cpu>"""))
devices = domain.find("devices")
devices.remove(devices.find("console"))
devices.remove(devices.find("serial"))
devices.append(xml.fromstring("""<serial type='tcp'><protocol type='raw'/>
    <source mode='bind' host='127.0.0.1' service='4555'/></serial>"""))
print(xml.tostring(domain, encoding="unicode"))
END

# ---- the server and the gateway ----

truncate -s 1G "$tmp/disk"
start_server --listen tcp://127.0.0.1:4556 "disk0=$tmp/disk"
# The place of systemd: keeps the socket, as the unit has it, and starts a gateway for each line.
cat >"$tmp/starter.py" <<'END'
import os, socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX)
os.umask(0o117)
listener.bind("/run/nbd/disk0.sock")
os.chown("/run/nbd/disk0.sock", 0, 64999)
listener.listen(8)

def give():
    os.dup2(listener.fileno(), 3)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))

for line in sys.stdin:
    p = subprocess.Popen(sys.argv[1:], preexec_fn=give, pass_fds=[3], stdin=subprocess.DEVNULL)
    print("PID=%d" % p.pid, flush=True)
    print("STATUS=%d" % p.wait(), flush=True)
END
mkfifo "$tmp/starts"
# shellcheck disable=SC2046 # words
/usr/bin/python3 "$tmp/starter.py" $(wrapper) "$RTRS_NBD" 127.0.0.1:4556 export=disk0 \
	connect-timeout=forever io-timeout=forever control="$tmp/gateway.ctl" \
	<"$tmp/starts" >"$tmp/started" 2>"$tmp/gateway.log" &
starter_pid=$!
exec 7>"$tmp/starts"
end_of_starter() {
	kill -TERM "$gateway" 2>/dev/null || true
	exec 7>&-
	expect_exit "$starter_pid" 0
}
gateways=0
# next_gateway: sets gateway, its process.
next_gateway() {
	echo start >&7
	gateways=$((gateways + 1))
	wait_until "gateway $gateways" started_so_many
	gateway=$(sed -n 's/^PID=//p' "$tmp/started" | tail -n 1)
}
started_so_many() { [ "$(grep -c ^PID= "$tmp/started")" -eq $gateways ]; }
gateway_answers() { "$top_builddir/rtrsctl" --socket "$tmp/gateway.ctl" list | grep -w "$gateway"; }
next_gateway
cleanup_fn end_of_starter
wait_until "the gateway" gateway_answers

# ---- the user of QEMU is no member of the group yet ----

virsh define --validate "$tmp/vm.xml"
must_fail virsh start vm0 >"$tmp/refused" 2>&1
cat "$tmp/refused"
grep -F "/run/nbd/disk0.sock': Permission denied" "$tmp/refused"
members=$(sed 's/^rtrs:.*/&libvirt-qemu/' "$tmp/group")
echo "$members" >"$tmp/group"

# ---- it runs ----

virsh start --paused vm0
end_of_machine() { virsh destroy vm0 || virsh domstate vm0 | grep 'shut off'; }
cleanup_fn end_of_machine
ps -o user= -C qemu-system-x86_64 | grep libvirt
exec 5<>/dev/tcp/127.0.0.1/4555
cat <&5 >"$tmp/console.log" &
cleanup_fn kill_process $!
virsh resume vm0
wrote() { sed -n 's/^wrote \([0-9]*\).*/\1/p' "$tmp/console.log" | tail -n 1; }
wrote_at_least() { [ "$(wrote)" -ge "$1" ]; }
# goes_on: it writes further blocks.
goes_on() {
	wait_until "more blocks" wrote_at_least $(($(wrote) + 3))
}
TIMEOUT_S=$((2 * TIMEOUT_S))	# the kernel boots without KVM
wait_line "$tmp/console.log" '^wrote 3'
kill -TERM "$gateway"
wait_line "$tmp/started" '^STATUS=0'
next_gateway
goes_on
# During a sync it would cost the machine an EIO (doc/decisions.md D13).
after_a_sync() { [ $(($(wrote) % 8)) -le 1 ]; }
wait_until "a block that was synced" after_a_sync
kill_process "$server_pid"
start_server --listen tcp://127.0.0.1:4556 "disk0=$tmp/disk"
goes_on
stop_server "$server_pid"
start_server --listen tcp://127.0.0.1:4556 "disk0=$tmp/disk"
goes_on
# Both at once, the gateway without a word.
kill -KILL "$gateway"
stop_server "$server_pid"
wait_line "$tmp/started" '^STATUS=-9'
next_gateway
start_server --listen tcp://127.0.0.1:4556 "disk0=$tmp/disk"
goes_on
echo stop >&5
wait_line "$tmp/console.log" '^read [0-9]+ as written|the machine failed'
grep -E '^read [0-9]+ as written' "$tmp/console.log" ||
	fail "$(grep 'the machine failed' "$tmp/console.log")"
n=$(wrote)
is_off() { virsh domstate vm0 | grep 'shut off'; }
wait_until "the end of the machine" is_off
/usr/bin/python3 - "$tmp/disk" "$n" <<'END'
import sys
with open(sys.argv[1], "rb") as disk:
    for i in range(1, int(sys.argv[2]) + 1):
        disk.seek(i * 65536)
        line = b"block %d\n" % i
        assert disk.read(65536) == (line * (65536 // len(line) + 1))[:65536], i
END

# ---- the disk of a machine of libvirt.xml moves to another server, as rtrs-guide(7) says ----

/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" qemu "" |
	grep '^virsh\|^.virsh' >"$tmp/virsh"
[ "$(wc -l <"$tmp/virsh")" -eq 2 ]
virsh undefine vm0
truncate -s 1G "$tmp/moved"
start_server --listen tcp://127.0.0.1:4557 "disk0=$tmp/moved"
"$RTRS_NBD" -f -U /run/nbd/moved.sock 127.0.0.1:4557 export=disk0 control="$tmp/moved.ctl" \
	>"$tmp/moved.log" 2>&1 &
cleanup_fn stop_process $!
wait_until "the gateway of the other server" "$top_builddir/rtrsctl" --socket "$tmp/moved.ctl" list
chmod 666 /run/nbd/moved.sock
cat >"$tmp/moved.py" <<'END'
import sys, xml.etree.ElementTree as xml
domain, tmp = xml.parse(sys.argv[1]).getroot(), sys.argv[2]
domain.set("type", "qemu")
domain.find("memory").attrib["unit"], domain.find("memory").text = "MiB", "64"
xml.ElementTree(domain).write(tmp + "/machine.xml")
disk = domain.find("devices").find("disk")
disk.find("source").find("host").set("socket", "/run/nbd/moved.sock")
xml.ElementTree(disk).write(tmp + "/moved.xml")
END
/usr/bin/python3 "$tmp/moved.py" "$examples/libvirt.xml" "$tmp"
virsh define "$tmp/machine.xml"
virsh start --paused vm0
cd "$tmp"
while IFS= read -r word; do
	eval "command=$word"
	timeout "$TIMEOUT_S" bash -c "$command" </dev/null >"$tmp/said" 2>&1 ||
		fail "$command: $(cat "$tmp/said")"
	cat "$tmp/said"
done <"$tmp/virsh"
grep -F "socket='/run/nbd/moved.sock'" "$tmp/said"
cmp "$tmp/disk" "$tmp/moved"
virsh destroy vm0
