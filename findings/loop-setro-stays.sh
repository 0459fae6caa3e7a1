#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: "blockdev --setro" of a loop device is a property of what is attached, and goes with it.  It stays with the
# number: the next file that is attached there is read-only, for whoever gets the number by "losetup -f", and losetup
# does not complain: O_RDWR succeeds, and each write is EPERM.  "losetup -r" leaves nothing behind (Linux 6.18).
# Needs root and a loop device; no package: the kernel is that of this machine.
. "$(dirname "$0")/common.sh"

[ "$(id -u)" -eq 0 ] || skip "a loop device needs root"
truncate -s 1M "$tmp/first" "$tmp/second"
loop=$(losetup -f --show "$tmp/first") || skip "no loop device here"
trap 'blockdev --setrw "$loop"; losetup -d "$loop"; rm -rf --one-file-system "$tmp"' EXIT
say "Linux $(uname -r)"

# attach FILE [OPTION...]: at $loop, in the place of what is there
attach() {
	losetup -d "$loop"
	until losetup "${@:2}" "$loop" "$1" 2>/dev/null; do sleep 0.1; done
}
write() {
	python3 - "$loop" <<'END'
import errno, os, sys
try:
    os.pwrite(os.open(sys.argv[1], os.O_RDWR), bytes(512), 0)
    print('ok')
except OSError as e:
    print(errno.errorcode[e.errno])
END
}
attach "$tmp/second" -r
expect "attached with -r" "$(write)" EPERM
attach "$tmp/second"
expect "attached again" "$(write)" ok
blockdev --setro "$loop"
expect "behind blockdev --setro" "$(write)" EPERM
attach "$tmp/first"
expect "another file at the number" "$(write)" EPERM
expect "what losetup says of it, read-only" "$(losetup -n -O RO "$loop" | tr -d ' ')" 1
blockdev --setrw "$loop"
expect "behind blockdev --setrw" "$(write)" ok
