#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The random runs with the first seeds, in each make check the same ones; with SIM_SEEDS in the
# environment so many.  check.sh --full has 100,000, and "make long" goes on behind the last one.  A
# run of the fence costs half of the others, a run of rtrs-nbd or of a killed client four times as
# much as these.
set -e
export SIM_SEEDS="${SIM_SEEDS-3000}"
${VALGRIND_TESTS-} ./test-sim-random
${VALGRIND_TESTS-} ./test-sim-fence random
export SIM_SEEDS=$((SIM_SEEDS / 8 + 1))
${VALGRIND_TESTS-} ./test-sim-kept-random
exec ${VALGRIND_TESTS-} ./test-sim-nbd-random
