# SPDX-License-Identifier: BSD-3-Clause
# librtrssrv: the server without its ring.  The simulation links it with a reactor and a storage of
# its own; the program links librtrsring.
SRV_CPPFLAGS = \
	$(AM_CPPFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' \
	-I$(top_srcdir)/src/store \
	-I$(top_srcdir)/src/store/file \
	-I$(top_srcdir)/src/store/rbd \
	-I$(top_srcdir)/%D%/rtrs \
	-I$(top_srcdir)/%D%/rnbd \
	-I$(top_srcdir)/%D%/change \
	-I$(top_srcdir)/%D%/ctl \
	-I$(top_srcdir)/%D%/conf \
	-I$(top_srcdir)/%D% \
	$(NULL)

if BUILD_SERVER
sbin_PROGRAMS += rtrs-server
noinst_LTLIBRARIES += librtrssrv.la librtrsring.la

librtrssrv_la_CPPFLAGS = $(SRV_CPPFLAGS)
librtrssrv_la_SOURCES = %D%/srv.c %D%/srv.h src/common/reactor/reactor.h \
	$(FILES_src_rtrs_server_rtrs) $(FILES_src_rtrs_server_rnbd) \
	$(FILES_src_rtrs_server_change) $(FILES_src_rtrs_server_conf)
librtrssrv_la_LIBADD = libstore.la libauth.la libfrwr.la libfab.la librtrs.la librnbd.la libopt.la libmetrics.la libbase.la

librtrsring_la_CPPFLAGS = $(SRV_CPPFLAGS)
librtrsring_la_SOURCES = $(FILES_src_common_reactor)
librtrsring_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
librtrsring_la_LIBADD = libstorering.la libstore.la libopt.la libbase.la $(LIBURING_LIBS)

rtrs_server_CPPFLAGS = $(SRV_CPPFLAGS)
rtrs_server_SOURCES = $(FILES_src_rtrs_server) $(FILES_src_rtrs_server_ctl)
if HAVE_SECCOMP
rtrs_server_SOURCES += %D%/filter.c
# Libraries that are opened later find them, too.
rtrs_server_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--export-dynamic-symbol=pthread_sigmask \
	-Wl,--export-dynamic-symbol=sigprocmask
endif
rtrs_server_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS) $(SECCOMP_CFLAGS)
rtrs_server_LDADD = librtrsring.la librtrssrv.la libjournal.la libctl.la libmetrics.la libclock.la $(SYSTEMD_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS)
endif
