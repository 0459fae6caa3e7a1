#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each thread that serves has short time slices, where the kernel has them (Linux 6.12).
. ./tests/functions.sh
requires_server; requires_gateway; requires_plugin

cat >"$tmp/slices.py" <<'PY'
# "PID": the longest and the shortest slice of its threads in ns; 0: the kernel has none to ask for.
# "NS COMMAND...": run the command with such slices.
import ctypes, os, struct, sys
SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274, "ppc64le": 355,
           "s390x": 345}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
def call(number, tid, attr, *rest):
    if libc.syscall(number, tid, attr, *rest) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
def slice_of(tid):
    attr = ctypes.create_string_buffer(48)
    call(SETATTR + 1, tid, attr, 48, 0)
    return struct.unpack("=IIQiIQQQ", attr.raw)[5]
if len(sys.argv) > 2:
    call(SETATTR, 0, struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, int(sys.argv[1]), 0, 0), 0)
    os.execvp(sys.argv[2], sys.argv[2:])
found = [slice_of(int(tid)) for tid in os.listdir("/proc/%s/task" % sys.argv[1])]
print(max(found), min(found))
PY
slices() { /usr/bin/python3 "$tmp/slices.py" "$@"; }

own=$(slices $$)
[ "${own% *}" -gt 300000 ] || skip "the kernel has no time slices to ask for: $own ns"
# expect_slices NS PROGRAM PID
expect_slices() {
	local now
	now=$(slices "$3")
	[ "$now" = "$1 $1" ] || fail "slices of the threads of $2, longest and shortest: $now ns"
}

truncate -s 16M "$tmp/disk"
start_server --threads=2 "disk=$tmp/disk"
expect_slices 300000 rtrs-server "$server_pid"
start_gateway --threads=3 "server=127.0.0.1:$server_port" mode=ro
nbdinfo --size "nbd+unix:///disk?socket=$sock" >"$tmp/size"
expect_slices 300000 rtrs-nbd "$gateway_pid"
start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=ro
# Its threads for requests live as long as a connection.
/usr/bin/python3 -c '
import nbd, subprocess, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
h.pread(512, 0)
print(subprocess.check_output(sys.argv[2:], text=True), end="")' \
	"$uri" /usr/bin/python3 "$tmp/slices.py" "$nbdkit_pid" >"$tmp/nbdkit"
[ "$(cat "$tmp/nbdkit")" = "300000 300000" ] || fail "nbdkit: $(cat "$tmp/nbdkit") ns"

# A slice that the administrator chose stays if it is shorter, and a policy without slices stays.
SERVER_PREFIX="/usr/bin/python3 $tmp/slices.py 100000" start_server disk=mem:1M
expect_slices 100000 "a server with short ones" "$server_pid"
SERVER_PREFIX="chrt --idle 0" start_server disk=mem:1M
expect_slices "${own% *}" "a server of SCHED_IDLE" "$server_pid"
