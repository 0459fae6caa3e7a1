#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Read-only in each of its three ways: the export, the mode, nbdkit -r.  Nothing is ever written.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

random_file "$tmp/disk" $((1 << 20))
random_file "$tmp/other" $((1 << 20))
cp "$tmp/disk" "$tmp/disk.before"
cp "$tmp/other" "$tmp/other.before"
start_server "frozen=$tmp/disk,readonly" "disk=$tmp/other"

refuses_writes() {
	cmp "$2" <(timeout "$TIMEOUT_S" nbdcopy "$1" -)
	nbdsh_run "$1" <<'END'
assert h.is_read_only()
h.set_strict_mode(0)
for call in (lambda: h.pwrite(b"x" * 512, 0), lambda: h.pwrite(b"x", 77),
             lambda: h.zero(4096, 0), lambda: h.trim(4096, 0)):
    try:
        call()
    except nbd.Error as e:
        assert e.errno == "EPERM", e
    else:
        raise SystemExit("a write to a read-only export succeeded")
assert len(h.pread(512, 0)) == 512
END
}

start_nbdkit "server=127.0.0.1:$server_port" export=frozen mode=ro
refuses_writes "$uri" "$tmp/disk.before"
start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=ro
refuses_writes "$uri" "$tmp/other.before"
start_nbdkit -r "server=127.0.0.1:$server_port" export=disk
refuses_writes "$uri" "$tmp/other.before"

# A read-only export is not opened for writing: the NBD client is refused, and the log says what to do.
start_nbdkit "server=127.0.0.1:$server_port" export=frozen mode=rw
must_fail timeout "$TIMEOUT_S" nbdinfo "$uri"
wait_line "$nbdkit_log" "frozen.*read-only.*mode=ro"

cmp "$tmp/disk.before" "$tmp/disk"
cmp "$tmp/other.before" "$tmp/other"
