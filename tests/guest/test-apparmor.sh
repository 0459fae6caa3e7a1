#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=200 full
# AppArmor's profile of a virtual machine, as libvirt makes it from the examples.  QEMU connects
# to the socket of a gateway: this kernel does not ask the profile for a socket.  With the rule of
# contrib/examples/libvirt.apparmor, for kernels that ask, QEMU connects, too, and nothing else is
# allowed.
. ./tests/functions.sh
requires_server; requires_gateway
requires apparmor_parser --version
requires test -x /usr/bin/aa-exec
requires qemu-system-x86_64 --version
helper=/usr/lib/libvirt/virt-aa-helper
rules=/etc/apparmor.d/abstractions/libvirt-qemu
requires test -x $helper
requires test -e $rules
mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
grep -w apparmor /sys/kernel/security/lsm || skip "a kernel without AppArmor"

start_server disk0=mem:8M
start_gateway "127.0.0.1:$server_port" export=disk0
mkdir -p /run/nbd
mount --bind "$tmp" /run/nbd
cp /etc/hostname /run/nbd/other

uuid=00000000-0000-0000-0000-000000000001
# profile EXAMPLE: as libvirtd has it made when the machine starts.
profile() {
	sed "s|<name>.*</name>|&<uuid>$uuid</uuid>|" "$top_srcdir/contrib/examples/$1" |
		$helper -c -u libvirt-$uuid
}

# opens DRIVER OPTIONS: as QEMU does at the start of the machine.
cat >"$tmp/opens" <<END
#!/bin/sh
printf '{"execute": "qmp_capabilities"} {"execute": "quit"}' |
	aa-exec -p libvirt-$uuid -- qemu-system-x86_64 -nodefaults -display none -machine none \\
		-qmp stdio -blockdev "driver=\$1,node-name=d,read-only=on,\$2"
END
chmod +x "$tmp/opens"
path=/run/nbd/${sock##*/}
opens_socket=("$tmp/opens" nbd "server.type=unix,server.path=$path")
is_denied() {
	dmesg | grep -E "apparmor=\"DENIED\" .*profile=\"libvirt-$uuid\" name=\"/run/nbd/other\""
}

# opens_disk_alone: and not another file there.
opens_disk_alone() {
	local example

	for example in libvirt.xml libvirt-commandline.xml; do
		profile $example
		"${opens_socket[@]}"
		dmesg --clear
		expect_failure 1 "Permission denied" "$tmp/opens" file filename=/run/nbd/other
		wait_until "a line of the kernel" is_denied
		$helper -D -u libvirt-$uuid
		rm -f /etc/apparmor.d/libvirt/libvirt-$uuid*
	done
}
opens_disk_alone

# Where the example says.
if grep -E '^ *(#?include) <local/abstractions/libvirt-qemu>' $rules; then
	cat "$top_srcdir/contrib/examples/libvirt.apparmor" \
		>>/etc/apparmor.d/local/abstractions/libvirt-qemu
else
	grep -E '^ *include if exists <abstractions/libvirt-qemu.d>' $rules
	mkdir -p $rules.d
	cp "$top_srcdir/contrib/examples/libvirt.apparmor" $rules.d/rtrs
fi
opens_disk_alone
umount /run/nbd
