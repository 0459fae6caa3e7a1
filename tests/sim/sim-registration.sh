#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The simulation's programs with the keys for reads that neither they nor sim-nic.sh (windows of
# type 2 over memory of the client's own) have: windows straight over the caller's buffers, windows
# of type 1, and static keys.  Then with digests.
# shellcheck disable=SC2086 # words
set -e
tests=${SIM_NIC_TESTS-ask clt dev digest kept mem multi multi-peer nbd-random path peer random small srv}
for test in $tests; do
	SIM_REGISTRATION=window ${VALGRIND_TESTS-} ./test-sim-$test || [ $? -eq 77 ]
done
# The clients of the last one are not the plugin's, and want windows of type 2.  A window of type 1
# ends later than its path: auth closes paths in each step.
for test in ${tests%srv} auth; do
	SIM_DEVICE=nic-1 ${VALGRIND_TESTS-} ./test-sim-$test || [ $? -eq 77 ]
done
for test in $tests; do
	SIM_DEVICE=nic SIM_REGISTRATION=static ${VALGRIND_TESTS-} ./test-sim-$test || [ $? -eq 77 ]
done
for test in clt dev multi path random srv; do
	SIM_DIGEST=1 ${VALGRIND_TESTS-} ./test-sim-$test
done
