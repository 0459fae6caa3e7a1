#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file shrinks while a client has it open: who asks for the size hears whom that hits, and the
# size stays until --force takes it, or the file is as large as before.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin
requires nbdsh --version

random_file "$tmp/disk" 4M
printf '[export "disk"]\npath = %s\n' "$tmp/disk" >"$tmp/conf"
start_server --config "$tmp/conf" --listen tcp://127.0.0.1:0
ctl=("$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock")
start_nbdkit "server=127.0.0.1:$server_port" export=disk sessname=gw1
of_export() {
	"${ctl[@]}" --json show | with_json "print(a['exports'][0]['$1'])"
}
is() { [ "$(of_export size)" -eq $(($1 << 20)) ] || fail "the size is not $1 MiB"; }
holds_open "$uri"

# Neither end maps it, or would get SIGBUS.
for pid in "$server_pid" "$nbdkit_pid"; do
	must_fail grep -F "$tmp/disk" "/proc/$pid/maps"
done
truncate -s 2M "$tmp/disk"
line="disk 4M -> 2M rejected: gw1 has it open, keeps the old size, and gets errors for requests"
expect_failure 1 "$line beyond 2M: restore the size of '$tmp/disk', or .* with --force" \
	"${ctl[@]}" export resize disk
is 4
"${ctl[@]}" reload | grep -F "$line"
grep -F "reload: $line" "$server_log"
is 4
truncate -s 4M "$tmp/disk"
[ "$("${ctl[@]}" export resize disk)" = "disk 4M as before" ]

truncate -s 3M "$tmp/disk"
"${ctl[@]}" --force export resize disk | grep -x "disk 4M -> 3M"
is 3
truncate -s 2M "$tmp/disk"
"${ctl[@]}" --force reload | grep -x "disk 3M -> 2M"
is 2

# Nobody has it open: nothing is asked.
let_go
stop_process "$nbdkit_pid"
unused() { [ "$(of_export users)" -eq 0 ]; }
wait_until "the close of the export" unused
truncate -s 1M "$tmp/disk"
"${ctl[@]}" export resize disk | grep -x "disk 2M -> 1M"
is 1
