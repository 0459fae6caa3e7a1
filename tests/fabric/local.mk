# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += fab-conformance
fab_conformance_SOURCES = \
	%D%/conformance.c \
	%D%/harness.c \
	%D%/harness.h \
	%D%/main-tcp.c \
	$(NULL)
fab_conformance_LDADD = libfab.la libclock.la libbase.la

TESTS += %D%/conformance-tcp.sh
dist_check_SCRIPTS += %D%/conformance-tcp.sh
