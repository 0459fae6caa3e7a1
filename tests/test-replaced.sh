#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The file behind an export is replaced, as "mv backup.img disk.img" does, or unlinked.  An export
# that nobody has open is opened again: whoever comes next has the new file.  One in use goes on
# with the former file, and reload, resize, check, show and status say so by its name.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl
disk=$tmp/disk

# new_file LETTER: a file full of it, in the place of the disk.
new_file() {
	head -c 1M /dev/zero | tr '\0' "$1" >"$tmp/new"
	mv "$tmp/new" "$disk"
}

# server_is STATUS REGEX: what a check of the server says.
server_is() {
	local status=0
	"$rtrsctl" --server check >"$tmp/check" 2>&1 || status=$?
	[ $status -eq "$1" ] && grep -q -E -- "$2" "$tmp/check"
}

# client_reads LETTER: a client that comes now has this file.
client_reads() {
	nbdsh_run "$uri" <<<"assert h.pread(4096, 0) == b'$1' * 4096, h.pread(1, 0)"
}

new_file a
cat >"$tmp/conf" <<END
[export "disk"]
path = $disk
[export "other"]
path = mem:1M
END
start_server --listen tcp://127.0.0.1:0 --config "$tmp/conf"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
client_reads a
closed() {
	"$rtrsctl" --server --json show | with_json '
sys.exit([e["users"] for e in a["exports"] if e["name"] == "disk"] != [0])'
}

# Nobody has it open: a client that comes has the new file, whether anybody has looked before or
# not.
wait_until "the close" closed
new_file b
client_reads b
wait_line "$server_log" "disk: '$disk' now names another file: it is opened again"
wait_until "the close" closed
new_file c
# This is no alarm.
status=0
"$rtrsctl" --server check >"$tmp/check" 2>&1 || status=$?
cat "$tmp/check"
[ $status -eq 0 ] || { [ $status -eq 1 ] && grep "disk opening since" "$tmp/check"; }
wait_until "a look that finds nothing" server_is 0 'RTRS OK'
client_reads c

# In use: the client has the former file, and each look says so.
wait_until "the close" closed
mkfifo "$tmp/opened" "$tmp/end" "$tmp/written"
export tmp
nbdsh_run "$uri" <<'END' &
import os
tmp = os.environ["tmp"]
open(tmp + "/opened", "w").close()
open(tmp + "/end").close()
h.pwrite(b"w" * 4096, 0)
h.flush()
assert h.pread(4096, 0) == b"w" * 4096
open(tmp + "/written", "w").close()
open(tmp + "/end").close()
END
holder=$!
timeout "$TIMEOUT_S" cat "$tmp/opened"
exec {kept}<"$disk"
new_file d
open="and clients have the old one open"
server_is 2 "CRITICAL.*: [a-z-]+ disk: disk replaced: its path now names another file, $open" ||
	fail "the check says: $(cat "$tmp/check")"
wait_line "$server_log" "disk: '$disk' now names another file: clients keep the storage"
"$rtrsctl" --server --json show | grep '"name":"disk"[^{}]*"storage":"replaced"'
("$rtrsctl" --server status || true) | grep -E '^disk .* replaced '
"$rtrsctl" --server export resize disk |
	grep "disk: '$disk' now names another file: clients have the old one open"
"$rtrsctl" --server reload |
	grep "disk: '$disk' now names another file: clients have the old one open"
# What the client writes is in the file that it opened, and in no other.
timeout "$TIMEOUT_S" tee "$tmp/end" </dev/null
timeout "$TIMEOUT_S" cat "$tmp/written"
[ "$(head -c 4096 "$disk" | tr -d d | wc -c)" = 0 ] || fail "the new file was written to"
[ "$(head -c 4096 <&$kept | tr -d w | wc -c)" = 0 ] || fail "the former file was not written to"
# And gone altogether.
mv "$disk" "$tmp/away"
server_is 2 "CRITICAL.*: [a-z-]+ disk: disk unlinked: its path now names no file, $open" ||
	fail "the check says: $(cat "$tmp/check")"
mv "$tmp/away" "$disk"
timeout "$TIMEOUT_S" tee "$tmp/end" </dev/null
expect_exit $holder 0
wait_until "the new file" server_is 0 'RTRS OK'
client_reads d

# Nobody has it open, and the new file cannot be served: it has no size.
wait_until "the close" closed
: >"$tmp/new"
mv "$tmp/new" "$disk"
wait_until "its failure" server_is 2 "disk: disk failed: export 'disk': '$disk' is empty"
"$rtrsctl" --server export resize disk && fail "an export without storage has a size"
# It comes by itself once the storage is there.
new_file e
wait_until "the storage" server_is 0 'RTRS OK'
client_reads e
