#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=900 full
# guest: kernel=6.12 timeout=900 full
# What the guest's tests of the plugin see over RDMA, with rtrs-server and with the kernel's
# rnbd-server, is true of rtrs-nbd, too.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_gateway

over_rtrs_nbd "$top_srcdir/tests/guest" plugin-rdma t27-plugin-kernel
