#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the document of NBD says where a good guess of a client's author is another one (nbd-
# document.py).
. ./tests/functions.sh
requires_server; requires_gateway
requires /usr/bin/python3 --version

truncate -s 6T "$tmp/disk" || skip "no sparse file of 6 TiB in $tmp"
dd if=/dev/urandom of="$tmp/disk" bs=1M count=1 seek=2M conv=notrunc status=none
start_server "disk=$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk

TIMEOUT_S=$TIMEOUT_S timeout $((6 * TIMEOUT_S)) \
	/usr/bin/python3 "$top_srcdir/tests/nbd-document.py" "$sock"
# A client that speaks nonsense is one line.
grep -q 'client [0-9]*: connection ends: a request does not begin with its magic number' \
	"$gateway_log"
