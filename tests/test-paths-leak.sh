#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# NBD clients, sessions of two paths and servers that come and go leave nothing behind in those that
# stay.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
. "$top_srcdir/tests/paths-leak.sh"
requires_server; requires_plugin
requires nbdsh --version
requires fio --enghelp=nbd
# Those keep memory of their own.
requires_plain_build

wires_up
truncate -s 16M "$tmp/disk"
leaks 30 20 10
