#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a request that moves fewer bytes than asked breaks its link, and the linked ones are cancelled, so header and
# data may be two linked sends.  This holds for READ, of a socket, too.  For SEND and RECV it holds with MSG_WAITALL
# alone (Linux 6.18): after a short SEND the next one goes out, and the stream has a gap.
# Needs gcc and an io_uring; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"
command -v gcc >/dev/null || skip "gcc is not installed"

gcc -O1 -w -o "$tmp/program" "$here/io-uring-short-send.c"
say "Linux $(uname -r)"
status=0
got=$("$tmp/program") || status=$?
[ $status -ne 77 ] || skip "no io_uring here"
expect "linked" "$got" \
"send: short, next done
recv: short, next done
read of a socket: short, next cancelled
recv with MSG_WAITALL: short, next cancelled"
