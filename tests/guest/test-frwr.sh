#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=150 full
# guest: kernel=6.12 timeout=150
# guest: kernel=6.1 timeout=150 full
# src/frwr on soft-RoCE: tests/frwr/device.h says what is done.  FRWR_CASES chooses.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"

[ -x ./tests/frwr/frwr-device-verbs ] || skip "built without rdma-core"
# shellcheck disable=SC2086 # words
FABRIC_ADDRESS=$ip4 ./tests/frwr/frwr-device-verbs rdma ${FRWR_CASES-}
