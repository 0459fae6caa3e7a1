# SPDX-License-Identifier: BSD-3-Clause
# One Criterion program per module.  They end in .crit so that they run through run-criterion.sh.
EXTRA_DIST += tests/run-criterion.sh
TEST_EXTENSIONS = .crit
CRIT_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-criterion.sh

UNIT_TESTS = \
	%D%/test-rtrs-wr.crit \
	$(NULL)

# Criterion programs abort at start under TSan; those jobs run tests/thread.
if HAVE_CRITERION
if !SANITIZE_THREAD
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
endif

%C%_test_rtrs_wr_crit_SOURCES = %D%/test-rtrs-wr.c %D%/unit.h
%C%_test_rtrs_wr_crit_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
%C%_test_rtrs_wr_crit_LDADD = librtrs.la libbase.la $(CRITERION_LIBS)
