#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a guest's kernel that panics in kmalloc() has a fault of its own.  With QEMU 7.2 the emulator (TCG) may be at
# fault: its CMPXCHG16B takes the flags of an older instruction for those it must keep.  An interrupt behind it saves
# them, and what returns to them does not go on as it was.  Linux allocates memory with that instruction.  QEMU 10.0
# and 11.1 keep the flags; for older ones a processor without cx16 does (-cpu qemu64,-cx16).
. "$(dirname "$0")/common.sh"
command -v gcc >/dev/null || skip "gcc is not installed"
[ "$(uname -m)" = x86_64 ] || skip "the program is one of x86-64"

gcc -O2 -static -o "$tmp/program" "$here/qemu-cmpxchg16b-flags.c"
packages bookworm qemu-user=1:7.2+dfsg-7+deb12u18+b3
packages trixie qemu-user=1:10.0.13+ds-0+deb13u1
for suite in bookworm trixie; do
	cp "$tmp/program" "$tmp/$suite/program"
done
kept='CF SF before: 1 1, after: 1 1'
expect "this processor" "$("$tmp/program")" "$kept"
expect "QEMU 7.2.22" "$(chroot "$tmp/bookworm" qemu-x86_64 /program)" 'CF SF before: 1 1, after: 0 0'
expect "QEMU 10.0.13" "$(chroot "$tmp/trixie" qemu-x86_64 /program)" "$kept"
