#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: "nbdkit --exit-with-parent" ends when the process that started it ends.  On Linux it ends when the thread
# that started it ends (nbdkit 1.32.5 and 1.42.3), since PR_SET_PDEATHSIG counts in threads.  So a program that starts
# its server from a pool of threads, by nbd_connect_command(3) for instance, loses the server later, in the middle of
# its requests.
. "$(dirname "$0")/common.sh"

cat >"$tmp/program" <<'PY'
import nbd
import sys
import threading

ARGS = ['nbdkit', '-s', '--exit-with-parent', 'memory', '1M']
h = nbd.NBD()


def start():
    h.connect_command(ARGS)


if sys.argv[1] == 'thread':
    t = threading.Thread(target=start)
    t.start()
    t.join()
else:
    start()
try:
    for _ in range(50):
        h.pread(512, 0)
        h.poll(100)
    print('serves')
except nbd.Error as e:
    print('gone')
PY
packages bookworm python3-libnbd=1.14.2-1 nbdkit=1.32.5-1
packages trixie python3-libnbd=1.22.2-1+b1 nbdkit=1.42.3-1
for suite in bookworm trixie; do
	cp "$tmp/program" "$tmp/$suite/program"
	expect "$suite, started by the main thread" "$(chroot "$tmp/$suite" python3 /program main)" serves
	expect "$suite, by a thread that has ended" "$(chroot "$tmp/$suite" python3 /program thread)" gone
done
