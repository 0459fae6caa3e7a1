#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit lists the exports of a server, few and many, and says which there are when one is asked for
# that there is not.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

truncate -s 1M "$tmp/disk"

listed() {
	timeout $((3 * TIMEOUT_S)) nbdinfo --list --json "nbd+unix:///?socket=$sock" \
		>"$tmp/list.json"
	with_json '
for export in a["exports"]:
    print(export["export-name"])' <"$tmp/list.json"
}

start_server "disk0=$tmp/disk" "disk1=$tmp/disk" $'new\nline='"$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" mode=ro
[ "$(listed)" = $'disk0\ndisk1\nnew\nline' ]
must_fail timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///disk9?socket=$sock"
wait_line "$nbdkit_log" "'disk9'.*no such export for this client; it has disk0, disk1, new.line\$"
stop_process "$nbdkit_pid"
# With export= it is that one, as far as NBD clients see.
start_nbdkit "server=127.0.0.1:$server_port" mode=ro export=disk1
[ "$(listed)" = disk1 ]
stop_process "$nbdkit_pid"
# And nbdkit does not start with one that is not there.
expect_nbdkit_failure "'disk9'.*; it has disk0, disk1, new.line\$" "server=127.0.0.1:$server_port" \
	export=disk9
stop_process "$server_pid"

# Many long names are many messages, and a text that says how many it leaves out.  Names between
# them that this client may not open count nowhere.
exports=()
for i in {1..250}; do
	name=$(printf '%04d-%0230d' "$i" 0)
	exports+=("$name=$tmp/disk" "hidden-$name=$tmp/disk,allow=192.0.2.1")
	echo "$name"
done >"$tmp/names"
start_server "${exports[@]}"
start_nbdkit "server=127.0.0.1:$server_port" mode=ro
listed >"$tmp/listed"
cmp "$tmp/names" "$tmp/listed"
must_fail timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///disk9?socket=$sock"
wait_line "$nbdkit_log" "'disk9'.*; it has 0001-0* and 249 more\$"
