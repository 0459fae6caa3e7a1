#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: exit() flushes streams and leaves one alone that another thread reads from.  With glibc 2.36 it does.
# With glibc 2.41 exit() waits until the thread has its line: a program whose thread stands in fgets(), getline(), or
# in fprintf() to a pipe that nobody reads, does not end by exit().
. "$(dirname "$0")/common.sh"
command -v gcc >/dev/null || skip "gcc is not installed"

gcc -w -o "$tmp/program" "$here/glibc-exit-stdio.c" -lpthread
packages bookworm libc6=2.36-9+deb12u14
packages trixie libc6=2.41-12+deb13u5
for suite in bookworm trixie; do
	cp "$tmp/program" "$tmp/$suite/program"
done
expect "glibc 2.36, exit()" "$(chroot "$tmp/bookworm" /program)" ""
expect "glibc 2.41, exit()" "$(chroot "$tmp/trixie" /program)" "waits "
