#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The faults of test-paths.sh, for longer and more often.
. ./tests/functions.sh
[ -n "${SLOW_TESTS-}" ] || skip "takes three minutes: set SLOW_TESTS=yes (check.sh --full does)"
. "$top_srcdir/tests/wires.sh"
. "$top_srcdir/tests/paths-faults.sh"
requires_server; requires_plugin
requires fio --enghelp=nbd
# How long requests take is what this is about.
requires_plain_build

wires_up
truncate -s 16M "$tmp/disk"
one_cut
flapping 60
swapped 9
both_cut 10
server_killed 20
server_restarted 20
server_frozen 10
