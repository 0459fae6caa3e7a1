# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += fab-conformance
# The suite without the main-*.c that each provider brings.
conformance_sources = \
	tests/fabric/cf-data.c \
	tests/fabric/cf-queue.c \
	tests/fabric/cf-setup.c \
	tests/fabric/cf-thread.c \
	tests/fabric/conformance.c \
	tests/fabric/conformance.h \
	tests/fabric/harness.c \
	tests/fabric/harness.h \
	$(NULL)
fab_conformance_SOURCES = $(conformance_sources) %D%/main-tcp.c
fab_conformance_LDADD = libfab.la libclock.la libbase.la

TESTS += %D%/conformance-tcp.sh
dist_check_SCRIPTS += %D%/conformance-tcp.sh
