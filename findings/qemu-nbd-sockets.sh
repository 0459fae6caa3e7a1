#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: an NBD server that takes its socket from systemd takes several, as a unit with two lines of ListenStream= hands
# over, for a unix socket beside TCP or for two addresses.  nbdkit 1.42.3 serves all.  qemu-nbd 10.0.13 ends with an
# error if there is more than one.
. "$(dirname "$0")/common.sh"

cat >"$tmp/activate.py" <<'PY'
"""FOLDER NUMBER COMMAND...: the command, in the chroot FOLDER, with NUMBER sockets /0.sock, ... as of systemd"""
import os
import socket
import sys

folder, number, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
sockets = []
for i in range(number):
    path = '%s/%d.sock' % (folder, i)
    if os.path.exists(path):
        os.unlink(path)
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen()
    sockets.append(s)
for i, s in enumerate(sockets):
    os.dup2(s.fileno(), 3 + i)
    os.set_inheritable(3 + i, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(number))
os.execvp('chroot', ['chroot', folder] + command)
PY

# seen NUMBER COMMAND...: the sizes that clients of each socket got, or what the server said
seen() {
	local pid i number=$1
	shift
	rm -f "$root"/*.sock
	python3 "$tmp/activate.py" "$root" "$number" "$@" >"$tmp/log" 2>&1 &
	pid=$!
	until [ -S "$root/$((number - 1)).sock" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	for ((i = 0; i < number; i++)); do
		chroot "$root" nbdinfo --size "nbd+unix:///?socket=/$i.sock" 2>/dev/null || true
	done
	kill $pid 2>/dev/null || true
	wait $pid || true
	grep LISTEN "$tmp/log" || true
}
packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1 nbdkit=1.42.3-1 libnbd-bin=1.22.2-1+b1
root=$tmp/trixie
truncate -s 1M "$root/disk"
nbdkit=(nbdkit -f file /disk)
qemu=(qemu-nbd --persistent --shared=0 --format=raw /disk)
expect "nbdkit, one socket" "$(seen 1 "${nbdkit[@]}")" 1048576
expect "nbdkit, two" "$(seen 2 "${nbdkit[@]}" | paste -sd' ')" "1048576 1048576"
expect "qemu-nbd, one" "$(seen 1 "${qemu[@]}")" 1048576
expect "qemu-nbd, two" "$(seen 2 "${qemu[@]}")" \
	"qemu-nbd: qemu-nbd does not support socket activation with LISTEN_FDS > 1"
