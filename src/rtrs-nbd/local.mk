# SPDX-License-Identifier: BSD-3-Clause
if BUILD_GATEWAY
bin_PROGRAMS += rtrs-nbd
endif

rtrs_nbd_SOURCES = \
	%D%/gate-clients.c \
	%D%/gate-clients.h \
	%D%/gate-export.c \
	%D%/gate-export.h \
	%D%/gate-listen.c \
	%D%/gate-listen.h \
	%D%/gate-options.c \
	%D%/gate-options.h \
	%D%/gate-round.c \
	%D%/gate-round.h \
	%D%/gate-run.c \
	%D%/gate-run.h \
	%D%/gate-stream.c \
	%D%/gate-stream.h \
	%D%/gate-tls.c \
	%D%/gate-tls.h \
	%D%/gate-trust.c \
	%D%/gate-trust.h \
	%D%/gate.c \
	%D%/gate.h \
	%D%/main.c \
	$(NULL)
rtrs_nbd_CPPFLAGS = $(CLT_CPPFLAGS) $(NBD_CPPFLAGS) -I$(top_srcdir)/%D%
rtrs_nbd_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS)
rtrs_nbd_LDADD = \
	libnbdsrv.la libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libjournal.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(JANSSON_LIBS) $(SYSTEMD_LIBS)
