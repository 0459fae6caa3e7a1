# SPDX-License-Identifier: BSD-3-Clause
# librtrssrv: the server without its ring.  The simulation links it with a reactor and a storage of
# its own; the program links librtrsring.
SRV_CPPFLAGS = \
	$(AM_CPPFLAGS) \
	-I$(top_srcdir)/%D%/reactor \
	-I$(top_srcdir)/src/store \
	-I$(top_srcdir)/src/store/file \
	-I$(top_srcdir)/%D% \
	$(NULL)

if BUILD_SERVER
sbin_PROGRAMS += rtrs-server
noinst_LTLIBRARIES += librtrssrv.la librtrsring.la

librtrssrv_la_CPPFLAGS = $(SRV_CPPFLAGS)
librtrssrv_la_SOURCES = \
	%D%/conf-allow.c \
	%D%/conf.c \
	%D%/conf.h \
	%D%/reactor/reactor.h \
	%D%/srv-accept.c \
	%D%/srv-accept.h \
	%D%/srv-chunk.c \
	%D%/srv-chunk.h \
	%D%/srv-con.c \
	%D%/srv-con.h \
	%D%/srv-dev-io.c \
	%D%/srv-dev-io.h \
	%D%/srv-dev.c \
	%D%/srv-dev.h \
	%D%/srv-export-stat.c \
	%D%/srv-export-stat.h \
	%D%/srv-fence.c \
	%D%/srv-fence.h \
	%D%/srv-geom.c \
	%D%/srv-geom.h \
	%D%/srv-ident.c \
	%D%/srv-ident.h \
	%D%/srv-prio.c \
	%D%/srv-prio.h \
	%D%/srv-info.c \
	%D%/srv-info.h \
	%D%/srv-key.c \
	%D%/srv-key.h \
	%D%/srv-list.c \
	%D%/srv-list.h \
	%D%/srv-listen.c \
	%D%/srv-listen.h \
	%D%/srv-log.c \
	%D%/srv-log.h \
	%D%/srv-mem.c \
	%D%/srv-mem.h \
	%D%/srv-open.c \
	%D%/srv-open.h \
	%D%/srv-ops.h \
	%D%/srv-path.c \
	%D%/srv-path.h \
	%D%/srv-pool.c \
	%D%/srv-pool.h \
	%D%/srv-priv.h \
	%D%/srv-req.c \
	%D%/srv-req.h \
	%D%/srv-rnbd-state.h \
	%D%/srv-rnbd.c \
	%D%/srv-rnbd.h \
	%D%/srv-sess.c \
	%D%/srv-sess.h \
	%D%/srv-size.c \
	%D%/srv-size.h \
	%D%/srv-stat.c \
	%D%/srv-stat.h \
	%D%/srv.c \
	%D%/srv.h \
	$(NULL)
librtrssrv_la_LIBADD = libstore.la libfrwr.la libfab.la librtrs.la librnbd.la libopt.la libbase.la

librtrsring_la_CPPFLAGS = $(SRV_CPPFLAGS)
librtrsring_la_SOURCES = \
	%D%/reactor/reactor-ring.h \
	%D%/reactor/reactor-watch.c \
	%D%/reactor/reactor-watch.h \
	%D%/reactor/reactor.c \
	$(NULL)
librtrsring_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
librtrsring_la_LIBADD = libstorering.la $(LIBURING_LIBS)

rtrs_server_CPPFLAGS = $(SRV_CPPFLAGS)
rtrs_server_SOURCES = \
	%D%/main.c \
	%D%/reactors.c \
	%D%/reactors.h \
	%D%/sink.c \
	%D%/sink.h \
	%D%/srv-ctl-json.c \
	%D%/srv-ctl-json.h \
	%D%/srv-ctl.c \
	%D%/srv-ctl.h \
	%D%/tell.c \
	%D%/tell.h \
	$(NULL)
rtrs_server_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
rtrs_server_LDADD = librtrsring.la librtrssrv.la libctl.la libclock.la $(SYSTEMD_LIBS) $(JANSSON_LIBS)
endif
