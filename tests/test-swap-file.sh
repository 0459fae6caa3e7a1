#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file to which the kernel swaps is not exported for writing.
. ./tests/functions.sh
requires_server; requires_root
requires mkfs.ext4 -V
requires mkswap --version

truncate -s 32M "$tmp/image"
mkfs.ext4 -q "$tmp/image"
mkdir "$tmp/mnt"
mount -o loop "$tmp/image" "$tmp/mnt" || skip "cannot mount a loop device here"
cleanup_umount "$tmp/mnt"
dd if=/dev/zero of="$tmp/mnt/swap" bs=1M count=4 status=none
chmod 600 "$tmp/mnt/swap"
mkswap "$tmp/mnt/swap"
swapon -p 0 "$tmp/mnt/swap" || skip "cannot swap to a file here"
swap_ends() { ! grep -F "$tmp/mnt/swap" /proc/swaps || swapoff "$tmp/mnt/swap"; }
cleanup_fn swap_ends

expect_failure 1 "'$tmp/mnt/swap' is in use as swap: end that first" \
	timeout "$TIMEOUT_S" "$RTRS_SERVER" --strict --listen "unix:$tmp/s" "swap=$tmp/mnt/swap"
start_server --listen "unix:$tmp/s" "swap=$tmp/mnt/swap,readonly"
stop_server "$server_pid"

# Afterwards the file is one as any other; two names of it are most often a mistake.
swap_ends
start_server --listen "unix:$tmp/s" "a=$tmp/mnt/swap" "b=$tmp/mnt/swap"
grep "warning: b: '$tmp/mnt/swap' and .* of export 'a' are the same storage: " \
	"$server_log"
