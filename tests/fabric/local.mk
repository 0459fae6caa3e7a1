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

check_PROGRAMS += test-tcp-wire
TESTS += test-tcp-wire
test_tcp_wire_SOURCES = \
	%D%/harness.c \
	%D%/harness.h \
	%D%/main-tcp.c \
	%D%/raw.c \
	%D%/raw.h \
	%D%/test-tcp-wire.c \
	$(NULL)
test_tcp_wire_LDADD = libfab.la libclock.la libbase.la
test_tcp_wire_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recvmsg,--wrap=sendmsg
