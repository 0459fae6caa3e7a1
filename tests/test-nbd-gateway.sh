#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-nbd gives an export to NBD clients: what they write is in the file, what they read is the
# file's, at any offset, and SIGTERM ends it with status 0.
. ./tests/functions.sh
requires_server; requires_gateway
requires nbdinfo --version
requires nbdcopy --version
requires qemu-io --version

head -c 8M /dev/urandom >"$tmp/disk"
start_server "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk

[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 8388608 ]
timeout "$TIMEOUT_S" nbdinfo --json "$uri" >"$tmp/info.json"
cat "$tmp/info.json"
/usr/bin/python3 - "$tmp/info.json" <<'END'
import json, sys
e = json.load(open(sys.argv[1]))["exports"][0]
want = dict(is_read_only=False, can_cache=True, can_df=True, can_flush=True, can_fua=True,
            can_multi_conn=True, can_trim=True, can_zero=True, block_size_minimum=1,
            block_size_maximum=64 << 20)
for name, want in want.items():
    assert e[name] == want, "%s is %r, not %r" % (name, e[name], want)
assert "disk" in e["description"], e["description"]
END

timeout "$TIMEOUT_S" nbdcopy "$uri" "$tmp/out"
cmp "$tmp/disk" "$tmp/out"
head -c 8M /dev/urandom >"$tmp/in"
timeout "$TIMEOUT_S" nbdcopy --flush "$tmp/in" "$uri"
cmp "$tmp/in" "$tmp/disk"

timeout "$TIMEOUT_S" qemu-io -f raw "$uri" \
	-c 'write -P 7 0 1M' -c 'write -P 5 123 77' -c 'read -P 5 123 77' -c 'read -P 7 200 1000' \
	-c 'write -f -P 9 2M 64k' -c flush -c 'discard 4M 1M' -c 'write -z 6M 100k' \
	-c 'read -P 0 6M 100k' -c 'read -P 9 2M 64k' | tee "$tmp/qemu-io.out"
[ "$(grep -c -E '^(read|wrote|discard) ' "$tmp/qemu-io.out")" -eq 9 ]
! grep -q -i -E 'failed|error' "$tmp/qemu-io.out"

stop_process "$gateway_pid"
[ ! -e "$sock" ] || fail "the socket is still there"
[ ! -s "$gateway_log" ] || fail "it says something"
