#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Where a system call filter forbids one of the calls of io_uring, as in containers, the server does
# not start, and one line says what is to be allowed.
. ./tests/functions.sh
requires_server
requires /usr/bin/python3 --version

truncate -s 1M "$tmp/disk"
# filter.py NUMBER ERRNO COMMAND...: the system call fails with the errno.
cat >"$tmp/filter.py" <<'END2'
import ctypes, os, struct, sys
number, err = int(sys.argv[1]), int(sys.argv[2])
def op(code, jt, jf, k):
    return struct.pack("=HBBI", code, jt, jf, k)
program = ctypes.create_string_buffer(
    op(0x20, 0, 0, 0) +                  # load the number
    op(0x15, 0, 1, number) +             # equal?
    op(0x06, 0, 0, 0x00050000 | err) +   # SECCOMP_RET_ERRNO
    op(0x06, 0, 0, 0x7fff0000))          # SECCOMP_RET_ALLOW
class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or \
   libc.prctl(22, 2, ctypes.byref(Fprog(4, ctypes.addressof(program))), 0, 0):
    sys.exit("no seccomp: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[3], sys.argv[3:])
END2
requires /usr/bin/python3 "$tmp/filter.py" 425 1 /bin/true

refused() {
	expect_failure 1 "$3" /usr/bin/python3 "$tmp/filter.py" "$1" "$2" \
		"$RTRS_SERVER" --listen tcp://127.0.0.1:0 "disk=$tmp/disk"
}
setup=425 register=427 eperm=1 eacces=13 enosys=38
refused $setup $eperm 'forbidden.*io_uring_setup.*seccomp.*SystemCallFilter=@aio'
refused $setup $eacces 'forbidden.*seccomp'
refused $setup $enosys 'no io_uring.*seccomp'
refused $register $eperm 'forbidden.*io_uring_register'
refused $register $enosys 'io_uring_register'
