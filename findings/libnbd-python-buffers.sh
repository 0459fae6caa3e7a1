#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: nbd.Buffer goes with its last Python reference, as everything in Python.  With libnbd 1.14.2 and 1.22.2 the
# buffer of a request of aio_pread() or aio_pwrite() stays for ever, even when the request is done and forgotten: 200
# requests of 1 MiB are 200 MiB.  Who makes one buffer for each request in flight, and uses it again, is spared.
. "$(dirname "$0")/common.sh"

cat >"$tmp/program" <<'PY'
import nbd
import resource

h = nbd.NBD()
h.connect_command(["nbdkit", "-s", "--exit-with-parent", "null", "1G"])
again = nbd.Buffer.from_bytearray(bytearray(1 << 20))


def mib_of(buffer):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(200):
        cookie = h.aio_pwrite(buffer(), 0)
        while not h.aio_command_completed(cookie):
            h.poll(-1)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10


print("one buffer: %s" % ("more" if mib_of(lambda: again) > 50 else "flat"), end=", ")
print("200 buffers: %s" % (
    "stay" if mib_of(lambda: nbd.Buffer.from_bytearray(bytearray(1 << 20))) > 150 else "go"))
PY
packages bookworm python3-libnbd=1.14.2-1 nbdkit=1.32.5-1
packages trixie python3-libnbd=1.22.2-1+b1 nbdkit=1.42.3-1
for suite in bookworm trixie; do
	cp "$tmp/program" "$tmp/$suite/program"
done
expect "libnbd 1.14.2" "$(chroot "$tmp/bookworm" python3 /program)" "one buffer: flat, 200 buffers: stay"
expect "libnbd 1.22.2" "$(chroot "$tmp/trixie" python3 /program)" "one buffer: flat, 200 buffers: stay"
