#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# As many random runs as people wait for; with SIM_SEEDS in the environment so many.  A run of the
# fence costs half of the others, a run of rtrs-nbd or of a killed client four times as much as these.
set -e
export SIM_SEEDS="${SIM_SEEDS-10000}"
${VALGRIND_TESTS-} ./test-sim-random
${VALGRIND_TESTS-} ./test-sim-fence random
export SIM_SEEDS=$((SIM_SEEDS / 8 + 1))
${VALGRIND_TESTS-} ./test-sim-kept-random
exec ${VALGRIND_TESTS-} ./test-sim-nbd-random
