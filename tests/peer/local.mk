# SPDX-License-Identifier: BSD-3-Clause
# A client made by hand (hpath.h), and what servers made by hand have in common (peer-srv.h).
check_LTLIBRARIES += libpeer.la
libpeer_la_SOURCES = \
	%D%/hpath-wc.c \
	%D%/hpath.c \
	%D%/hpath.h \
	%D%/hreq.c \
	%D%/peer-srv.c \
	%D%/peer-srv.h \
	$(NULL)
