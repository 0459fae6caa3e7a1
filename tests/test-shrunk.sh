#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The server comes back with what is not the same export: smaller, another file under its name, or
# read-only.  It is not used, the log says why, and nothing changes in it; when the old one is back
# it is used again.  One that has grown is the same, and new clients see its size.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin
requires nbdsh --version

random_file "$tmp/disk" 1M
cp "$tmp/disk" "$tmp/other"
start_server "disk=$tmp/disk"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk mode=rw io-timeout=1

holds_open "$uri"

works() {
	nbdsh_run "$uri" <<'END'
h.pwrite(b"y" * 512, 512)
assert h.pread(512, 512) == b"y" * 512
h.flush()
END
}

# comes_back LINE SPEC [WHY]: as SPEC, and is refused with LINE, and because of WHY;
# then as the old one, which works.
comes_back() {
	local before
	stop_server "$server_pid"
	before=$(cksum <"$tmp/disk"; cksum <"$tmp/other")
	start_server --listen "tcp://127.0.0.1:$port" "$2"
	wait_line "$nbdkit_log" "$1"
	wait_line "$nbdkit_log" "cannot be opened again: ${3-}"
	nbdsh_run "$uri" <<'END'
def refused(call):
    must_fail(call, "EIO", "a request to what is not the export succeeded")

refused(lambda: h.pread(512, 0))
refused(lambda: h.pwrite(b"z", 5))
refused(lambda: h.pwrite(b"z" * 512, 0))
refused(lambda: h.zero(512, 0))
refused(lambda: h.flush())
END
	stop_server "$server_pid"
	[ "$(cksum <"$tmp/disk"; cksum <"$tmp/other")" = "$before" ]
	truncate -s 1M "$tmp/disk"
	start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
	wait_until "the export" works
}

works
comes_back "export came back as another file, or on another host: it is not used" "disk=$tmp/other" \
	"another file has its name, or the server is another host .the log says which.$"
comes_back "cannot be opened again: read-only on the server, for all clients" \
	"disk=$tmp/disk,readonly"
stop_server "$server_pid"
truncate -s $(((64 << 10) + 512)) "$tmp/disk"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
comes_back "export came back with 66048 bytes instead of 1048576: it is not used" "disk=$tmp/disk" \
	"shrunk, or with other blocks .* .the log says which.$"

stop_server "$server_pid"
truncate -s 2M "$tmp/disk"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
wait_line "$nbdkit_log" "export has grown: 2097152 bytes instead of 1048576"
nbdsh_run "$uri" <<'END'
assert h.get_size() == 2 << 20
h.pwrite(b"e" * 512, (2 << 20) - 512)
h.flush()
END
let_go
