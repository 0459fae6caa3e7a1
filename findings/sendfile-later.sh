#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: when sendfile(2) to a socket has returned, the peer gets the bytes that the file had then, as with read and
# write.  The socket holds the pages, not their bytes (Linux 6.18, unix sockets and TCP): a write to the file before
# the peer has received changes what the peer receives.  So a server that answers READ by sendfile may send data of a
# later WRITE.
# No package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

say "Linux $(uname -r)"
# received HOW FAMILY: of 64 KiB of "a", with a write of "b" after the call
received() {
	python3 - "$tmp/file" "$1" "$2" <<'END'
import os, socket, sys
path, how, family = sys.argv[1:]
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b'a' * 65536, 0)
if family == 'unix':
    near, far = socket.socketpair()
else:
    with socket.create_server(('127.0.0.1', 0)) as server:
        near = socket.create_connection(server.getsockname())
        far = server.accept()[0]
if how == 'sendfile':
    n = os.sendfile(near.fileno(), fd, 0, 65536)
else:
    n = near.send(os.pread(fd, 65536, 0))
os.pwrite(fd, b'b' * 65536, 0)
print(''.join(sorted(set(far.recv(n, socket.MSG_WAITALL).decode()))))
END
}
for family in unix tcp; do
	expect "$family, read and send" "$(received send $family)" a
	expect "$family, sendfile" "$(received sendfile $family)" b
done
