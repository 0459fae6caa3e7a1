# SPDX-License-Identifier: BSD-3-Clause
# Plain programs with several threads; the TSan job lives from them.
check_PROGRAMS += $(THREAD_TESTS)
TESTS += $(THREAD_TESTS)
