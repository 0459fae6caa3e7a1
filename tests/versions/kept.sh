#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client process that is killed, and the next one, at a server of before, which knows no lineage: with
# mode=rw it lets the next one in when it has noticed the death of the first one.  With mode=migration it
# would let both in, so the client does not open there.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
kernel=$top_builddir/tests/server/kept-kernel
requires test -x "$kernel"

truncate -s 1M "$tmp/disk"
use before
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk"
direct=$(sed -n 's,.*tcp://127\.0\.0\.2:\([0-9]*\).*,127.0.0.2:\1,p' "$server_log" | head -n 1)
/usr/bin/python3 "$top_srcdir/tests/delay-relay.py" "$server_port" 0 >"$tmp/relay.port" &
relay_pid=$!
cleanup_fn kill_process "$relay_pid"
cleanup_fn let_go_on "$relay_pid"
wait_line "$tmp/relay.port" '^[0-9]+$'

# kills N MODE
kills() {
	"$kernel" "bash '$top_srcdir/tests/stop-threads.sh' $TIMEOUT_S $relay_pid" \
		"kill -CONT $relay_pid" "$1" "$tmp/$2.session" "server=tcp://$direct" \
		"path=tcp://127.0.0.1:$(cat "$tmp/relay.port")" export=disk "mode=$2" control=none \
		>"$tmp/$2.out" 2>"$tmp/$2.err"
}

kills 4 rw || { cat "$tmp/rw.err"; exit 1; }
cat "$tmp/rw.out"
grep -q -E '^[0-9]{2,} writes, 4 kills, [1-9][0-9]* requests again$' "$tmp/rw.out"

must_fail kills 1 migration
grep -F 'the server does not end the session of a former process' "$tmp/migration.err"
