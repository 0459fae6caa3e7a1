#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# qemu-img: convert in and out, compare, bench.
. ./tests/functions.sh
requires_server; requires_plugin
requires qemu-img --version

random_file "$tmp/image" $((8 << 20))
truncate -s 32M "$tmp/image"
head -c 32M /dev/urandom >"$tmp/disk"
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

q() { timeout $((2 * TIMEOUT_S)) qemu-img "$@"; }
q info "$uri"
q convert -n -f raw -O raw "$tmp/image" "$uri"
q compare -f raw -F raw "$tmp/image" "$uri"
cmp "$tmp/image" "$(stored "$tmp/disk")"
q convert -f raw -O qcow2 -m 16 -W "$uri" "$tmp/out.qcow2"
q compare -f qcow2 -F raw "$tmp/out.qcow2" "$uri"
q bench -f raw -t none -c 2000 -d 32 -s 4096 "$uri"
q bench -f raw -t none -w --flush-interval=64 -c 1000 -d 16 -s 65536 "$uri"
# The bench wrote: the export and the file are the same still, and differ from the image.
q compare -f raw -F raw "$(stored "$tmp/disk")" "$uri"
status=0
q compare -f raw -F raw "$tmp/image" "$uri" || status=$?
[ $status -eq 1 ]
