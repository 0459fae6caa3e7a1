# SPDX-License-Identifier: BSD-3-Clause
# Tests that need a kernel of their own: make check-guest runs them in QEMU guests.
CLEANFILES += $(GUEST_TESTS:.sh=.log) $(GUEST_TESTS:.sh=.trs)

if BUILD_SERVER
check_PROGRAMS += $(GUEST_TOOLS)
endif

# The logs are newer than the scripts then, so that automake only counts them.
.PHONY: check-guest
check-guest:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_DATA)
	rm -f $(TEST_SUITE_LOG)
	srcdir='$(srcdir)'; bash "$$srcdir/tests/guest/run-tests.sh" \
		$$(for t in $(GUEST_TESTS); do echo "$$srcdir/$$t"; done)
	$(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS="$(GUEST_TESTS)"
