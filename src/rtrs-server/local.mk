# SPDX-License-Identifier: BSD-3-Clause
# librtrssrv: the server without its ring.  The simulation links it with a reactor and a storage of
# its own; the program links librtrsring.
SRV_CPPFLAGS = \
	$(AM_CPPFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' \
	-I$(top_srcdir)/%D%/reactor \
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
librtrssrv_la_SOURCES = \
	%D%/change/apply-listen.c \
	%D%/change/apply-listen.h \
	%D%/change/apply-removed.c \
	%D%/change/apply-removed.h \
	%D%/change/apply.c \
	%D%/change/apply.h \
	%D%/change/doubts.c \
	%D%/change/doubts.h \
	%D%/change/tell.c \
	%D%/change/tell.h \
	%D%/change/change-priv.h \
	%D%/change/change-reload.c \
	%D%/change/change-snapshot.c \
	%D%/change/change.c \
	%D%/change/change.h \
	%D%/conf/conf-allow.c \
	%D%/conf/conf-exports.c \
	%D%/conf/conf-cpus.c \
	%D%/conf/conf-export-options.c \
	%D%/conf/conf-file.c \
	%D%/conf/conf-allow.h \
	%D%/conf/conf-limits.c \
	%D%/conf/conf-limits.h \
	%D%/conf/conf-priority.c \
	%D%/conf/conf-priority.h \
	%D%/conf/conf-options.c \
	%D%/conf/conf-priv.h \
	%D%/conf/conf-save.c \
	%D%/conf/conf-save.h \
	%D%/conf/conf.c \
	%D%/conf/conf.h \
	%D%/conf/plan.c \
	%D%/conf/plan.h \
	%D%/reactor/reactor.h \
	%D%/rnbd/srv-close.c \
	%D%/rnbd/srv-close.h \
	%D%/rnbd/srv-dev-io.c \
	%D%/rnbd/srv-dev-io.h \
	%D%/rnbd/srv-dev.c \
	%D%/rnbd/srv-dev.h \
	%D%/rnbd/srv-export-stat.c \
	%D%/rnbd/srv-export-stat.h \
	%D%/rnbd/srv-export.c \
	%D%/rnbd/srv-export.h \
	%D%/rnbd/srv-ident.c \
	%D%/rnbd/srv-ident.h \
	%D%/rnbd/srv-allow.c \
	%D%/rnbd/srv-allow.h \
	%D%/rnbd/srv-limit.c \
	%D%/rnbd/srv-limit.h \
	%D%/rnbd/srv-list.c \
	%D%/rnbd/srv-list.h \
	%D%/rnbd/srv-open.c \
	%D%/rnbd/srv-open.h \
	%D%/rnbd/srv-prio.c \
	%D%/rnbd/srv-prio.h \
	%D%/rnbd/srv-probe.c \
	%D%/rnbd/srv-probe.h \
	%D%/rnbd/srv-break.c \
	%D%/rnbd/srv-break.h \
	%D%/rnbd/srv-resize.c \
	%D%/rnbd/srv-resize.h \
	%D%/rnbd/srv-result.h \
	%D%/rnbd/srv-rnbd-state.h \
	%D%/rnbd/srv-rnbd.c \
	%D%/rnbd/srv-rnbd.h \
	%D%/rnbd/srv-sess-info.c \
	%D%/rnbd/srv-sess-info.h \
	%D%/rnbd/srv-size-req.h \
	%D%/rnbd/srv-size.c \
	%D%/rnbd/srv-size.h \
	%D%/rtrs/srv-accept.c \
	%D%/rtrs/srv-accept.h \
	%D%/rtrs/srv-auth.c \
	%D%/rtrs/srv-auth.h \
	%D%/rtrs/srv-pass.c \
	%D%/rtrs/srv-pass.h \
	%D%/rtrs/srv-chunk.c \
	%D%/rtrs/srv-chunk.h \
	%D%/rtrs/srv-con.c \
	%D%/rtrs/srv-con.h \
	%D%/rtrs/srv-fence.c \
	%D%/rtrs/srv-fence.h \
	%D%/rtrs/srv-geom.c \
	%D%/rtrs/srv-geom.h \
	%D%/rtrs/srv-hb.c \
	%D%/rtrs/srv-hb.h \
	%D%/rtrs/srv-info.c \
	%D%/rtrs/srv-info.h \
	%D%/rtrs/srv-key-pool.c \
	%D%/rtrs/srv-key-pool.h \
	%D%/rtrs/srv-key.c \
	%D%/rtrs/srv-keys.c \
	%D%/rtrs/srv-keys.h \
	%D%/rtrs/srv-key.h \
	%D%/rtrs/srv-listen.c \
	%D%/rtrs/srv-listen.h \
	%D%/rtrs/srv-log.c \
	%D%/rtrs/srv-log.h \
	%D%/rtrs/srv-mem.c \
	%D%/rtrs/srv-mem.h \
	%D%/rtrs/srv-names.c \
	%D%/rtrs/srv-names.h \
	%D%/rtrs/srv-refused.c \
	%D%/rtrs/srv-refused.h \
	%D%/rtrs/srv-ops.h \
	%D%/rtrs/srv-path.c \
	%D%/rtrs/srv-path.h \
	%D%/rtrs/srv-pool.c \
	%D%/rtrs/srv-pool.h \
	%D%/rtrs/srv-req.c \
	%D%/rtrs/srv-req.h \
	%D%/rtrs/srv-sess.c \
	%D%/rtrs/srv-sess.h \
	%D%/rtrs/srv-setup.c \
	%D%/rtrs/srv-setup.h \
	%D%/rtrs/srv-stat.c \
	%D%/rtrs/srv-stat.h \
	%D%/rtrs/srv-state.h \
	%D%/srv.c \
	%D%/srv.h \
	$(NULL)
librtrssrv_la_LIBADD = libstore.la libauth.la libfrwr.la libfab.la librtrs.la librnbd.la libopt.la libmetrics.la libbase.la

librtrsring_la_CPPFLAGS = $(SRV_CPPFLAGS)
librtrsring_la_SOURCES = \
	%D%/reactor/reactor-ring.h \
	%D%/reactor/reactor-restrict.c \
	%D%/reactor/reactor-restrict.h \
	%D%/reactor/reactor-watch.c \
	%D%/reactor/reactor-watch.h \
	%D%/reactor/reactor.c \
	$(NULL)
librtrsring_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
librtrsring_la_LIBADD = libstorering.la libstore.la libopt.la libbase.la $(LIBURING_LIBS)

rtrs_server_CPPFLAGS = $(SRV_CPPFLAGS)
rtrs_server_SOURCES = \
	%D%/confine.c \
	%D%/confine.h \
	%D%/ctl/srv-age.c \
	%D%/ctl/srv-age.h \
	%D%/ctl/srv-ctl-json.c \
	%D%/ctl/srv-ctl-json.h \
	%D%/ctl/srv-ctl.c \
	%D%/ctl/srv-ctl.h \
	%D%/ctl/srv-explain-who.c \
	%D%/ctl/srv-explain-who.h \
	%D%/ctl/srv-explain.c \
	%D%/ctl/srv-explain.h \
	%D%/ctl/srv-metrics.c \
	%D%/ctl/srv-metrics.h \
	%D%/denied.c \
	%D%/denied.h \
	%D%/filter.h \
	%D%/main.c \
	%D%/program.h \
	%D%/reactors.c \
	%D%/reactors.h \
	%D%/sink.c \
	%D%/sink.h \
	%D%/stop.c \
	$(NULL)
if HAVE_SECCOMP
rtrs_server_SOURCES += %D%/filter.c %D%/filter-calls.c %D%/filter-calls.h %D%/sigsys.c
# Libraries that are opened later find them, too.
rtrs_server_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--export-dynamic-symbol=pthread_sigmask \
	-Wl,--export-dynamic-symbol=sigprocmask
endif
rtrs_server_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS) $(SECCOMP_CFLAGS)
rtrs_server_LDADD = librtrsring.la librtrssrv.la libjournal.la libctl.la libmetrics.la libclock.la $(SYSTEMD_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS)
endif
