#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An image of QEMU, VMware, Hyper-V or VirtualBox that is exported as it lies is a warning with the
# name of the format, once; a raw disk is none, nor one with LUKS.
. ./tests/functions.sh
requires_server
requires qemu-img --version

specs=()
image() { # NAME FORMAT [OPTION...]
	qemu-img create -q -f "$2" "${@:3}" "$tmp/$1" 1M
	truncate -s %512 "$tmp/$1"
	specs+=("$1=$tmp/$1")
}
image qcow2 qcow2
image vmdk vmdk
image vmdk-flat vmdk -o subformat=monolithicFlat
image vhdx vhdx
image vdi vdi
image raw raw
truncate -s 1M "$tmp/luks"
printf 'LUKS\xba\xbe\0\2' | dd of="$tmp/luks" conv=notrunc status=none
specs+=("luks=$tmp/luks" "again=$tmp/qcow2,readonly")

start_server "${specs[@]}"
for name in qcow2 vmdk vhdx vdi vmdk-flat; do
	line=$(grep "warning: $name: " "$server_log")
	[[ $line == *"'$tmp/$name' is a ${name%-flat} image: clients see the bytes of the"* ]]
done
[ "$(grep -c "warning: again: .* qcow2 image" "$server_log")" -eq 1 ]
must_fail grep -E "warning: (raw|luks)" "$server_log"
stop_process "$server_pid"

# O_DIRECT where the file system has it.
start_server "direct=$tmp/qcow2,direct"
grep "warning: direct: .* is a qcow2 image" "$server_log"
