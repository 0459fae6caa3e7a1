#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# As many random runs as people wait for; with SIM_SEEDS in the environment so many.  Those of the
# fence cost half of the others.
set -e
export SIM_SEEDS="${SIM_SEEDS-10000}"
${VALGRIND_TESTS-} ./test-sim-random
exec ${VALGRIND_TESTS-} ./test-sim-fence random
