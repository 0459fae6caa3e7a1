#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a registered buffer of 4 KiB takes 4 KiB of RLIMIT_MEMLOCK.  Where its memory is part of a transparent huge
# page, the buffer takes the whole page, 2 MiB, and is ENOMEM with a limit below that (Linux 6.18).  With "always" in
# /sys/kernel/mm/transparent_hugepage/enabled no program has to ask for such a page.  So one program with one limit can
# register its buffers on one machine, and not on the next one.  MADV_NOHUGEPAGE before the first use helps.
# Needs root, gcc and an io_uring; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"
command -v gcc >/dev/null || skip "gcc is not installed"
[ "$(id -u)" -eq 0 ] || skip "another user needs root"
(ulimit -l 4096) || skip "RLIMIT_MEMLOCK cannot be 4 MiB here"
[ "$(getconf PAGESIZE)" -eq 4096 ] || skip "pages are larger than 4 KiB here"

gcc -O1 -w -o "$tmp/program" "$here/io-uring-huge-memlock.c"
chmod 711 "$tmp"
say "Linux $(uname -r)"
# registered KIB: by a user without CAP_IPC_LOCK, whose limit that is
registered() {
	# shellcheck disable=SC2016 # arguments of bash
	setpriv --reuid 61234 --regid 61234 --clear-groups --bounding-set=-ipc_lock \
		bash -c 'ulimit -l "$1" && exec "$2"' bash "$1" "$tmp/program"
}
status=0
got=$(registered 4096) || status=$?
[ $status -ne 77 ] || skip "no io_uring or no huge pages here"
expect "limit of 4 MiB" "$got" \
"4 KiB in small pages: 4 KiB
4 KiB in a huge page: 2048 KiB"
expect "limit of 1 MiB" "$(registered 1024)" \
"4 KiB in small pages: 4 KiB
4 KiB in a huge page: ENOMEM"
