#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What test-paths-leak.sh does, a thousand times.
. ./tests/functions.sh
[ -n "${SLOW_TESTS-}" ] || skip "takes some minutes: set SLOW_TESTS=yes (check.sh --full does)"
. "$top_srcdir/tests/wires.sh"
. "$top_srcdir/tests/paths-leak.sh"
requires_server; requires_plugin
requires nbdsh --version
requires fio --enghelp=nbd
requires_plain_build

wires_up
truncate -s 16M "$tmp/disk"
leaks 1000 1000 100
