#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=400 full
# bpftrace and the scripts of contrib/ see the requests of a server and of the plugin: this kernel
# has uprobes.
. ./tests/functions.sh
requires bpftrace --version
[ -e /sys/kernel/tracing/uprobe_events ] || mount -t tracefs tracefs /sys/kernel/tracing
status=0
"$top_srcdir/tests/test-probes.sh" >"$tmp/test-probes.log" 2>&1 || status=$?
[ "$status" -eq 0 ] || fail "tests/test-probes.sh: status $status"
