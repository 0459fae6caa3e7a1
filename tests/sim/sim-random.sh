#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# As many random runs as people wait for; with SIM_SEEDS in the environment so many.
set -e
SIM_SEEDS=${SIM_SEEDS-10000} exec ./test-sim-random
