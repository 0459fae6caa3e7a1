# SPDX-License-Identifier: BSD-3-Clause
# Integration tests: nbdkit and rtrs-server over tcp, one behaviour each, in the top build directory.
TEST_EXTENSIONS += .sh
# A test has time-outs of its own; this one is for what they did not foresee.
SH_LOG_COMPILER = timeout -k 20 400 bash

SHELL_TESTS = \
	$(NULL)

TESTS += $(SHELL_TESTS)
EXTRA_DIST += \
	$(SHELL_TESTS) \
	%D%/lsan.supp \
	%D%/tsan.supp \
	%D%/valgrind.supp \
	$(NULL)
