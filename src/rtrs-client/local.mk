# SPDX-License-Identifier: BSD-3-Clause
# The client without a thread or a sleep: the simulation links it with its own ways to wait and loop.h.
CLT_CPPFLAGS = \
	$(AM_CPPFLAGS) \
	-I$(top_srcdir)/%D%/io \
	-I$(top_srcdir)/%D%/loop \
	-I$(top_srcdir)/%D%/path \
	-I$(top_srcdir)/%D%/sess \
	-I$(top_srcdir)/%D%/dev \
	-I$(top_srcdir)/%D%/conf \
	-I$(top_srcdir)/%D%/ctl \
	-I$(top_srcdir)/%D%/start \
	$(NULL)

noinst_LTLIBRARIES += libclt.la
libclt_la_CPPFLAGS = $(CLT_CPPFLAGS)
libclt_la_SOURCES = \
	%D%/io/clt-account.c \
	%D%/io/clt-account.h \
	%D%/io/clt-fsm.h \
	%D%/io/clt-io-priv.h \
	%D%/io/clt-io.h \
	%D%/io/clt-key.c \
	%D%/io/clt-mem.c \
	%D%/io/clt-op.c \
	%D%/io/clt-pick.c \
	%D%/io/clt-reg.c \
	%D%/io/clt-reg.h \
	%D%/io/clt-rx.c \
	%D%/io/clt-slot.c \
	%D%/io/clt-tx.c \
	%D%/io/clt-wait.h \
	%D%/path/clt-auth.c \
	%D%/path/clt-auth.h \
	%D%/path/clt-cause.c \
	%D%/path/clt-cause.h \
	%D%/path/clt-con.c \
	%D%/path/clt-con0.c \
	%D%/path/clt-hint.c \
	%D%/path/clt-hint.h \
	%D%/path/clt-lookup.c \
	%D%/path/clt-lookup.h \
	%D%/path/clt-names.c \
	%D%/path/clt-names.h \
	%D%/path/clt-path-end.c \
	%D%/path/clt-path-life.c \
	%D%/path/clt-path-names.c \
	%D%/path/clt-path-priv.h \
	%D%/path/clt-path-step.c \
	%D%/path/clt-path.c \
	%D%/path/clt-path.h \
	%D%/path/clt-setup.c \
	%D%/path/clt-stat.c \
	%D%/path/clt-stat.h \
	%D%/sess/clt-addr.c \
	%D%/sess/clt-addr.h \
	%D%/sess/clt-epoch.c \
	%D%/sess/clt-epoch.h \
	%D%/sess/clt-paths.c \
	%D%/sess/clt-paths.h \
	%D%/sess/clt-sess.c \
	%D%/sess/clt-sess.h \
	%D%/dev/client-tell.c \
	%D%/dev/client.c \
	%D%/dev/client.h \
	%D%/dev/dev-answer.c \
	%D%/dev/dev-call.c \
	%D%/dev/dev-call.h \
	%D%/dev/dev-ctl.c \
	%D%/dev/dev-extents.c \
	%D%/dev/dev-extents.h \
	%D%/dev/dev-fsm.h \
	%D%/dev/dev-greet.c \
	%D%/dev/dev-handshake.c \
	%D%/dev/dev-io.c \
	%D%/dev/dev-life.c \
	%D%/dev/dev-list.c \
	%D%/dev/dev-list.h \
	%D%/dev/dev-look.c \
	%D%/dev/dev-loss.c \
	%D%/dev/dev-loss.h \
	%D%/dev/dev-priv.h \
	%D%/dev/dev-reopen.c \
	%D%/dev/dev-settle.c \
	%D%/dev/dev-req.c \
	%D%/dev/dev-req.h \
	%D%/dev/dev-stat.c \
	%D%/dev/dev-stat.h \
	%D%/dev/dev-why.c \
	%D%/dev/dev-why.h \
	%D%/dev/dev.c \
	%D%/dev/dev.h \
	$(NULL)
libclt_la_LIBADD = libauth.la libfrwr.la

# Its threads.
noinst_LTLIBRARIES += libcltthread.la
libcltthread_la_CPPFLAGS = $(CLT_CPPFLAGS)
libcltthread_la_SOURCES = %D%/io/clt-wait-threads.c

# Its IO on the caller's own loop, instead of them.
noinst_LTLIBRARIES += libcltloop.la
libcltloop_la_CPPFLAGS = $(CLT_CPPFLAGS)
libcltloop_la_SOURCES = %D%/loop/clt-loop.c %D%/loop/clt-loop.h

# What a front end needs besides.
noinst_LTLIBRARIES += libcltkit.la
libcltkit_la_CPPFLAGS = $(CLT_CPPFLAGS)
libcltkit_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libcltkit_la_SOURCES = \
	%D%/conf/clt-conf-file.c \
	%D%/conf/clt-conf-file.h \
	%D%/conf/clt-conf-options.c \
	%D%/conf/clt-conf.c \
	%D%/conf/clt-conf.h \
	%D%/conf/clt-front.h \
	%D%/ctl/clt-ctl-json.c \
	%D%/ctl/clt-ctl-json.h \
	%D%/ctl/clt-ctl.c \
	%D%/ctl/clt-ctl.h \
	%D%/ctl/clt-metrics-rows.c \
	%D%/ctl/clt-metrics.c \
	%D%/ctl/clt-metrics.h \
	%D%/ctl/clt-change.c \
	%D%/ctl/clt-change.h \
	%D%/ctl/clt-save.c \
	%D%/ctl/clt-save.h \
	%D%/ctl/clt-reload.c \
	%D%/ctl/clt-reload.h \
	%D%/start/clt-export.c \
	%D%/start/clt-export.h \
	%D%/start/clt-probe.c \
	%D%/start/clt-probe.h \
	%D%/start/clt-run.c \
	%D%/start/clt-run.h \
	%D%/start/clt-start-priv.h \
	%D%/start/clt-start.c \
	%D%/start/clt-start.h \
	$(NULL)
libcltkit_la_LIBADD = libmetrics.la
