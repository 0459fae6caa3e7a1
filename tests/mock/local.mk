# SPDX-License-Identifier: BSD-3-Clause
# A fabric that does not forgive, and a server behind it; see mock-hca.h and mock-server.h.
check_LTLIBRARIES += libmockhca.la libmockserver.la
libmockhca_la_SOURCES = \
	%D%/mock-cm.c \
	%D%/mock-hca.h \
	%D%/mock-mem.c \
	%D%/mock-priv.h \
	%D%/mock-qp.c \
	$(NULL)
libmockserver_la_SOURCES = %D%/mock-server.c %D%/mock-server.h
