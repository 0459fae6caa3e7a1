#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two paths over two cables, in network namespaces, with a load that verifies: a cable cut, again
# and again, both cut, the server killed, restarted, frozen.  No error, no wrong data, and a pause
# no longer than it takes to find out.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
. "$top_srcdir/tests/paths-faults.sh"
requires_server; requires_plugin
requires fio --enghelp=nbd
# How long requests take is what this is about.
requires_plain_build

wires_up
truncate -s 16M "$tmp/disk"
one_cut
flapping 4
both_cut 2
server_killed 3
server_restarted 2
server_frozen 2
