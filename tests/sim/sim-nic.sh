#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The simulation's programs over a device that is like RDMA ones: it sends from nothing that is not
# registered and cannot give a region another range.
# shellcheck disable=SC2086 # words
set -e
SIM_DEVICE=nic
export SIM_DEVICE
tests="ask clt dev digest fence kept mem multi multi-peer nbd-random path peer random small srv"
for test in ${SIM_NIC_TESTS-$tests}; do
	# 77: skipped
	${VALGRIND_TESTS-} ./test-sim-$test || [ $? -eq 77 ]
done
