#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client process is killed again and again, and the next one takes its place, while requests of the
# dead one are still on one of its ways.  The user of the disk keeps what was not answered, and finds all
# that was.
. ./tests/functions.sh
requires_server
kernel=tests/server/kept-kernel
requires test -x "$kernel"

truncate -s 1M "$tmp/rw" "$tmp/migration"
# Two ways are two pairs of addresses.
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "rw=$tmp/rw" \
	"migration=$tmp/migration"
direct=$(sed -n 's,.*tcp://127\.0\.0\.2:\([0-9]*\).*,127.0.0.2:\1,p' "$server_log" | head -n 1)
/usr/bin/python3 "$top_srcdir/tests/delay-relay.py" "$server_port" 0 >"$tmp/relay.port" &
relay_pid=$!
cleanup_fn kill_process "$relay_pid"
cleanup_fn let_go_on "$relay_pid"
wait_line "$tmp/relay.port" '^[0-9]+$'

# With mode=migration two writers may have the disk: only the lineage keeps a dead process out.
for mode in rw migration; do
	"$kernel" "bash '$top_srcdir/tests/stop-threads.sh' $TIMEOUT_S $relay_pid" \
		"kill -CONT $relay_pid" 15 "$tmp/$mode.session" "server=tcp://$direct" \
		"path=tcp://127.0.0.1:$(cat "$tmp/relay.port")" "export=$mode" "mode=$mode" \
		control=none \
		>"$tmp/$mode.out" 2>"$tmp/$mode.err" || { cat "$tmp/$mode.err"; exit 1; }
	cat "$tmp/$mode.out"
	grep -q -E '^[0-9]{3,} writes, 15 kills, [1-9][0-9]* requests again$' "$tmp/$mode.out"
done
grep -q ': path down: its client goes on in another process$' "$server_log"
