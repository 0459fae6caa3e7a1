#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: nbd_shutdown(3) has a flag to abandon what is pending, so without the flag it waits for the replies.  It
# waits until requests are sent, not for replies (libnbd 1.14.2 and 1.22.2): the completion of a write under way is
# ESHUTDOWN, and nbdkit gives the write up.  A program has to wait for aio_in_flight() == 0 before.
. "$(dirname "$0")/common.sh"

cat >"$tmp/program" <<'PY'
import errno
import nbd
import sys

errors = []
h = nbd.NBD()
h.connect_command(['nbdkit', '-s', '--exit-with-parent', '--filter=delay', 'memory', '1M', 'wdelay=3'])
data = nbd.Buffer.from_bytearray(bytearray(512))
h.aio_pwrite(data, 0, completion=lambda error: errors.append(error.value) or 1)
while sys.argv[1] == 'wait' and h.aio_in_flight():
    h.poll(-1)
h.shutdown()
print(' '.join(errno.errorcode[e] if e else 'written' for e in errors))
PY
packages bookworm python3-libnbd=1.14.2-1 nbdkit=1.32.5-1
packages trixie python3-libnbd=1.22.2-1+b1 nbdkit=1.42.3-1
for suite in bookworm trixie; do
	cp "$tmp/program" "$tmp/$suite/program"
	expect "$suite, shutdown" "$(chroot "$tmp/$suite" python3 /program at-once 2>/dev/null)" ESHUTDOWN
	expect "$suite, wait and shutdown" "$(chroot "$tmp/$suite" python3 /program wait)" written
done
