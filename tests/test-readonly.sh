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
    must_fail(call, "EPERM", "a write to a read-only export succeeded")
assert len(h.pread(512, 0)) == 512
END
}

start_nbdkit "server=127.0.0.1:$server_port" export=frozen mode=ro
refuses_writes "$uri" "$tmp/disk.before"
start_nbdkit "server=127.0.0.1:$server_port" export=disk mode=ro
refuses_writes "$uri" "$tmp/other.before"
start_nbdkit -r "server=127.0.0.1:$server_port" export=disk
refuses_writes "$uri" "$tmp/other.before"

# Without a mode a read-only export is read-only, and another is not; whoever names it.
start_nbdkit "server=127.0.0.1:$server_port" export=frozen
refuses_writes "$uri" "$tmp/disk.before"
start_nbdkit "server=127.0.0.1:$server_port"
refuses_writes "nbd+unix:///frozen?socket=$sock" "$tmp/disk.before"
nbdsh_run "nbd+unix:///disk?socket=$sock" <<'END'
assert not h.is_read_only()
h.pwrite(h.pread(512, 0), 0)
END

# What a client chose for a name speaks to no terminal.
SOCK=$sock nbdsh_run "nbd+unix:///disk?socket=$sock" <<'END'
import os
other = nbd.NBD()
other.set_export_name("no\x1b]0;such\x07\n\u009bdisk")
try:
    other.connect_unix(os.environ["SOCK"])
    raise SystemExit("opened")
except nbd.Error as ex:
    print(ex.errno)
END
wait_line "$nbdkit_log" "'no\\?]0;such\\?\\?\\?\\?disk'.*no such export"
must_fail grep -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2\x9b' "$nbdkit_log"

# Who asks for writing is refused, when nbdkit starts or when the client comes, and is told what to
# do.
expect_nbdkit_failure "'frozen'.*read-only.*mode=ro" "server=127.0.0.1:$server_port" export=frozen \
	mode=rw
expect_nbdkit_failure "'frozen'.*read-only.*mode=ro" "server=127.0.0.1:$server_port" export=frozen \
	mode=migration
start_nbdkit "server=127.0.0.1:$server_port" mode=rw
must_fail timeout "$TIMEOUT_S" nbdinfo "nbd+unix:///frozen?socket=$sock"
wait_line "$nbdkit_log" "frozen.*read-only.*mode=ro"

cmp "$tmp/disk.before" "$tmp/disk"
cmp "$tmp/other.before" "$tmp/other"
