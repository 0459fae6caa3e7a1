# SPDX-License-Identifier: BSD-3-Clause
# librtrssrv: the server without its ring.  The simulation links it with a reactor and a storage of
# its own; the program links librtrsring.
if BUILD_SERVER
noinst_LTLIBRARIES += librtrssrv.la

librtrssrv_la_SOURCES = \
	%D%/conf.h \
	%D%/export-io.h \
	%D%/export.h \
	%D%/inbox.c \
	%D%/inbox.h \
	%D%/reactor-op.h \
	%D%/reactor.h \
	%D%/srv.h \
	%D%/timer.c \
	%D%/timer.h \
	$(NULL)
librtrssrv_la_LIBADD = libfab.la librtrs.la librnbd.la libbase.la
endif
