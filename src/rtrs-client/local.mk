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
libclt_la_SOURCES = $(FILES_src_rtrs_client_io) $(FILES_src_rtrs_client_path) $(FILES_src_rtrs_client_sess) $(FILES_src_rtrs_client_dev)
libclt_la_LIBADD = libauth.la libfrwr.la

# Its threads.
noinst_LTLIBRARIES += libcltthread.la
libcltthread_la_CPPFLAGS = $(CLT_CPPFLAGS)
libcltthread_la_SOURCES = %D%/io/clt-wait-threads.c

# Its IO on the caller's own loop, instead of them.
noinst_LTLIBRARIES += libcltloop.la
libcltloop_la_CPPFLAGS = $(CLT_CPPFLAGS)
libcltloop_la_SOURCES = $(FILES_src_rtrs_client_loop)

# What a front end needs besides.
noinst_LTLIBRARIES += libcltkit.la
libcltkit_la_CPPFLAGS = $(CLT_CPPFLAGS)
libcltkit_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libcltkit_la_SOURCES = $(FILES_src_rtrs_client_conf) $(FILES_src_rtrs_client_ctl) $(FILES_src_rtrs_client_start)
libcltkit_la_LIBADD = libmetrics.la
