# SPDX-License-Identifier: BSD-3-Clause
# libsimfab is virtual time, faults, and the fabric over both; libsim client, server and storage in it.
SIM_FABRIC_TESTS = test-sim-fabric %D%/conformance-sim.sh
check_PROGRAMS += $(SIM_FABRIC_TOOLS)
TESTS += $(SIM_FABRIC_TESTS)

if BUILD_SERVER
if !SANITIZE_THREAD
SIM_NIC_TESTS = %D%/sim-nic.sh %D%/sim-registration.sh
check_PROGRAMS += $(SIM_PLAIN_TESTS) $(SIM_RANDOM_TESTS)
TESTS += $(SIM_PLAIN_TESTS) %D%/sim-random.sh $(SIM_NIC_TESTS)

SIM_SECONDS = 60
check-sim: test-sim-random
	SIM_SECONDS=$(SIM_SECONDS) SIM_SEED=$${SIM_SEED-$$(date +%s)} ./test-sim-random
endif
endif
# Outside of the conditions: automake wants one condition for all of .PHONY.
.PHONY: check-sim
