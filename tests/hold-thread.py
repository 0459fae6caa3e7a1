#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""hold-thread.py TID...: hold threads of other processes, as a debugger does, until this one ends.

Prints "held" when they stand still.  A held thread runs nothing, handles no signal, and goes with
its process."""
import ctypes
import os
import signal
import sys

PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4


def ptrace(request, tid):
    if libc.ptrace(request, tid, 0, 0) < 0:
        sys.exit("ptrace: " + os.strerror(ctypes.get_errno()))


for tid in map(int, sys.argv[1:]):
    ptrace(PTRACE_SEIZE, tid)
    ptrace(PTRACE_INTERRUPT, tid)
    os.waitpid(tid, WALL)
print("held", flush=True)
signal.pause()
