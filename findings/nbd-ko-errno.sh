#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: the program sees the error that the NBD server sends: a full server is ENOSPC.  nbd.ko of Linux 6.12 makes EIO
# of each error, so a full server looks like a broken disk.  dm-multipath takes EIO for a failure of the path: one WRITE
# without space fails all paths, and then each READ fails, too.
. "$(dirname "$0")/guest.sh"

guest_packages linux-image-6.12.118+deb13-amd64=6.12.118-1 nbdkit=1.42.3-1 nbd-client=1:3.26.1-6.1 \
	dmsetup=2:1.02.205-2
cat >"$tmp/job" <<'END'
export DM_DISABLE_UDEV=1
# serve NUMBER ERROR: /dev/nbdNUMBER of a server whose writes fail so once there is /tmp/full
serve() {
	nbdkit -U "/tmp/socket$1" -P "/tmp/pid$1" --filter=error memory 64M error-pwrite="$2" error-rate=100% \
		error-file=/tmp/full
	timeout 30 sh -c "until [ -s /tmp/pid$1 ]; do sleep 0.1; done"
	nbd-client -unix "/tmp/socket$1" "/dev/nbd$1" >/tmp/log 2>&1 || cat /tmp/log
}
# try WORD FILE...: one block by dd
try() {
	if dd bs=4k count=1 "${@:2}" 2>/tmp/log; then
		echo "$1: ok"
	else
		echo "$1: $(sed -n 's/^dd: .*: //p' /tmp/log)"
	fi
}
number=0
for error in ENOSPC EPERM ENOMEM EINVAL; do
	serve $number $error
	touch /tmp/full
	try "server says $error, program" if=/dev/zero of=/dev/nbd$number oflag=direct
	rm /tmp/full
	number=$((number + 1))
done
serve 4 ENOSPC
serve 5 ENOSPC
dmsetup create paths --table "0 131072 multipath 0 0 1 1 round-robin 0 2 1 /dev/nbd4 1 /dev/nbd5 1"
dmsetup mknodes
try "two paths, write" if=/dev/zero of=/dev/mapper/paths oflag=direct
touch /tmp/full
try "two paths, a write without space" if=/dev/zero of=/dev/mapper/paths oflag=direct
dmsetup status paths | grep -o ' 43:[0-9]* [AF]' | sed 's/ 43:[0-9]* A/path active/; s/ 43:[0-9]* F/path failed/'
try "two paths, read" if=/dev/mapper/paths of=/dev/null iflag=direct
END
seen=$(in_guest "$tmp/job" nbd nbds_max=6 dm-multipath dm-round-robin)
expect "nbd.ko" "$seen" \
"server says ENOSPC, program: Input/output error
server says EPERM, program: Input/output error
server says ENOMEM, program: Input/output error
server says EINVAL, program: Input/output error
two paths, write: ok
two paths, a write without space: Input/output error
path failed
path failed
two paths, read: Input/output error"
