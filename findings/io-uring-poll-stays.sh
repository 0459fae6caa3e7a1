#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: when a process was killed and its parent has waited for it, the kernel has closed its sockets, so the next
# process may connect to a unix socket of the dead one to see that nobody listens.  If an io_uring of the process polls
# the socket, the kernel closes the file some time later, in a worker (Linux 6.18): until then connect(2) succeeds, and
# who replaces a stale socket by this test finds it in use.  With poll(2) the guess holds.
# Needs root, mmdebstrap and an io_uring; the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

packages bookworm liburing-dev=2.3-3 gcc=4:12.2.0-3 libc6-dev=2.36-9+deb12u14
cp "$here/io-uring-poll-stays.c" "$tmp/bookworm/tmp/listens.c"
chroot "$tmp/bookworm" gcc -O1 -o /tmp/listens /tmp/listens.c -luring
say "Linux $(uname -r)"

# stays HOW: of 100 killed processes, how many had a socket that took a connection afterwards
stays() {
	python3 - "$tmp/bookworm" "$1" <<'END'
import os, socket, subprocess, sys
root, how = sys.argv[1:]
path, seen = root + "/tmp/s", 0
for _ in range(100):
    if os.path.exists(path):
        os.unlink(path)
    p = subprocess.Popen(["chroot", root, "/tmp/listens", "/tmp/s", how], stdout=subprocess.PIPE)
    if not p.stdout.readline():
        sys.exit("no io_uring" if p.wait() == 77 else "does not listen")
    p.kill()
    p.wait()
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
            seen += 1
        except ConnectionRefusedError:
            pass
print(seen)
END
}
expect "poll(2), taken by the dead" "$(stays poll)" 0
ring=$(stays ring) || skip "$ring"
say "io_uring, taken by the dead: $ring of 100"
[ "$ring" -gt 0 ] || { say "changed: expected some"; exit 1; }
