#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=240 full
# guest: kernel=6.12 timeout=240 full
# guest: kernel=6.1 timeout=240 full
# The fabric's promises over the verbs provider, on IPv4 and IPv6.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"

[ -x ./fab-conformance-verbs ] || skip "built without rdma-core"
FABRIC_ADDRESS=$ip4 ./fab-conformance-verbs rdma
FABRIC_ADDRESS=[$ip6] ./fab-conformance-verbs rdma
