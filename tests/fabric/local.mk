# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += fab-conformance
fab_conformance_SOURCES = \
	%D%/cf-data.c \
	%D%/cf-queue.c \
	%D%/cf-setup.c \
	%D%/cf-thread.c \
	%D%/conformance.c \
	%D%/conformance.h \
	%D%/harness.c \
	%D%/harness.h \
	%D%/main-tcp.c \
	$(NULL)
fab_conformance_LDADD = libfab.la libclock.la libbase.la

TESTS += %D%/conformance-tcp.sh
dist_check_SCRIPTS += %D%/conformance-tcp.sh
