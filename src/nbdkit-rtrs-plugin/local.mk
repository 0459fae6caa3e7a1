# SPDX-License-Identifier: BSD-3-Clause
# The client without what needs nbdkit, a thread or a sleep: the simulation links it with its own
# clt-wait.h and loop.h.
noinst_LTLIBRARIES += libclt.la
libclt_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/%D%
libclt_la_SOURCES = \
	%D%/clt-cause.c \
	%D%/clt-cause.h \
	%D%/clt-fsm.h \
	%D%/clt-rx.c \
	%D%/clt-tx.c \
	%D%/clt-io-priv.h \
	%D%/clt-io.h \
	%D%/clt-key.c \
	%D%/clt-reg.c \
	%D%/clt-reg.h \
	%D%/clt-mem.c \
	%D%/clt-op.c \
	%D%/clt-path-priv.h \
	%D%/clt-con.c \
	%D%/clt-con0.c \
	%D%/clt-epoch.c \
	%D%/clt-epoch.h \
	%D%/clt-path-life.c \
	%D%/clt-path.c \
	%D%/clt-paths.c \
	%D%/clt-paths.h \
	%D%/clt-pick.c \
	%D%/clt-path.h \
	%D%/clt-sess.c \
	%D%/clt-sess.h \
	%D%/clt-setup.c \
	%D%/clt-slot.c \
	%D%/clt-stat.c \
	%D%/clt-stat.h \
	%D%/clt-wait.h \
	%D%/client.c \
	%D%/client.h \
	%D%/dev-ctl.c \
	%D%/dev-extents.c \
	%D%/dev-extents.h \
	%D%/dev-io.c \
	%D%/dev-list.c \
	%D%/dev-list.h \
	%D%/dev-look.c \
	%D%/dev-priv.h \
	%D%/dev-reopen.c \
	%D%/dev-stat.c \
	%D%/dev-stat.h \
	%D%/dev.c \
	%D%/dev.h \
	$(NULL)

libclt_la_LIBADD = libfrwr.la

# Its threads.
noinst_LTLIBRARIES += libcltthread.la
libcltthread_la_CPPFLAGS = $(libclt_la_CPPFLAGS)
libcltthread_la_SOURCES = \
	%D%/clt-wait.c \
	$(NULL)

EXTRA_DIST += %D%/plugin.syms

if BUILD_PLUGIN
plugin_LTLIBRARIES += nbdkit-rtrs-plugin.la
nbdkit_rtrs_plugin_la_CPPFLAGS = $(libclt_la_CPPFLAGS)
nbdkit_rtrs_plugin_la_CFLAGS = $(AM_CFLAGS) $(NBDKIT_CFLAGS) $(JANSSON_CFLAGS)
nbdkit_rtrs_plugin_la_SOURCES = \
	%D%/clt-conf.c \
	%D%/clt-conf.h \
	%D%/clt-ctl-json.c \
	%D%/clt-ctl-json.h \
	%D%/clt-ctl.c \
	%D%/clt-ctl.h \
	%D%/clt-fds.c \
	%D%/clt-fds.h \
	%D%/clt-start.c \
	%D%/clt-start.h \
	%D%/clt-tell.c \
	%D%/clt-tell.h \
	%D%/plugin.c \
	$(NULL)
nbdkit_rtrs_plugin_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--version-script=$(srcdir)/%D%/plugin.syms
nbdkit_rtrs_plugin_la_DEPENDENCIES = %D%/plugin.syms $(nbdkit_rtrs_plugin_la_LIBADD)
nbdkit_rtrs_plugin_la_LIBADD = \
	libclt.la libcltthread.la libctl.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la \
	$(JANSSON_LIBS)
endif
