#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The promises of fabric.h, kept by the sim provider.
# shellcheck disable=SC2086 # words
exec ${VALGRIND_TESTS-} ./fab-conformance-sim sim "$@"
