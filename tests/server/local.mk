# SPDX-License-Identifier: BSD-3-Clause
if BUILD_SERVER
check_PROGRAMS += $(SERVER_TOOLS) $(KEPT_TOOLS)
TESTS += %D%/test-server.sh
endif
