# SPDX-License-Identifier: BSD-3-Clause
# The programs are in the file programs here.  They end in .crit so that they run through run-criterion.sh.
TEST_EXTENSIONS = .crit
CRIT_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-criterion.sh

# Criterion programs abort at start under TSan; those jobs run tests/thread.
if HAVE_CRITERION
if !SANITIZE_THREAD
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
endif
