#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# qemu-io: odd sizes and offsets, which QEMU sends as they are.
. ./tests/functions.sh
requires_server; requires_plugin
requires qemu-io --version

truncate -s 8M "$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

timeout $((2 * TIMEOUT_S)) qemu-io -f raw -t none \
	-c 'write -P 0x11 0 1M' \
	-c 'write -P 0x22 1 1' -c 'write -P 0x33 511 2' -c 'write -P 0x44 4095 4098' \
	-c 'write -f -P 0x55 100000 12345' -c 'write -z 200001 54321' -c 'write -z -u 400000 4096' \
	-c 'discard 524288 65536' -c flush \
	-c 'read -P 0x11 0 1' -c 'read -P 0x22 1 1' -c 'read -P 0x11 2 509' \
	-c 'read -P 0x33 511 2' \
	-c 'read -P 0x11 513 3582' -c 'read -P 0x44 4095 4098' -c 'read -P 0x55 100000 12345' \
	-c 'read -P 0x11 112345 10' -c 'read -P 0 200001 54321' -c 'read -P 0x11 254322 100' \
	-c 'read -P 0 400000 4096' -c 'read -P 0 524288 65536' -c 'read -P 0 8388607 1' \
	"$uri" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "qemu-io"; }
cat "$tmp/out"
# qemu-io says what went wrong and goes on with status 0.
must_fail grep -q -i -E 'fail|error|mismatch' "$tmp/out"
[ "$(grep -c -E '^(wrote|read|discard)' "$tmp/out")" -eq 21 ]
