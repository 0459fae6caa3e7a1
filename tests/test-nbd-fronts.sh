#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the plugin's tests see through NBD is true of rtrs-nbd, too: each of these runs over it.
. ./tests/functions.sh
requires_server; requires_gateway

over_rtrs_nbd "$top_srcdir/tests" \
	allow direct durability enospc export-allow extents fio-verify flags hangup \
	io-timeout ipv6 large large-device list-exports lost-flush metrics-client multi-conn \
	nbdcopy \
	nbdinfo past-end qemu-img qemu-io qemu-storage-daemon readonly reboot-flush \
	resize rtrsctl-check rtrsctl-client rtrsctl-find shrunk two-exports unaligned zero-length
