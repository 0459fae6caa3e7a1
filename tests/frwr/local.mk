# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CRITERION
if !SANITIZE_THREAD
check_PROGRAMS += $(FRWR_TESTS)
TESTS += $(FRWR_TESTS)
endif
endif

check_PROGRAMS += $(FRWR_PLAIN_TESTS) $(FRWR_WIRE_TESTS) $(FRWR_VERBS_TESTS)
TESTS += $(FRWR_PLAIN_TESTS) $(FRWR_WIRE_TESTS)

# Each row of requirements and each item of the list of tests has a test or a reason.
TESTS += tests/check-frwr-rows.sh
