# SPDX-License-Identifier: BSD-3-Clause
if BUILD_SERVER
check_PROGRAMS += $(KEPT_TOOLS)
endif
