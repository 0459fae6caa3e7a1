# SPDX-License-Identifier: BSD-3-Clause
FABRIC_TESTS = %D%/conformance-tcp.sh $(FABRIC_WIRE_TESTS)
check_PROGRAMS += $(FABRIC_WIRE_TESTS) $(FABRIC_TOOLS)
TESTS += $(FABRIC_TESTS)
