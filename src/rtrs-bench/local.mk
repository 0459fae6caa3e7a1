# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += rtrs-bench

rtrs_bench_SOURCES = $(FILES_src_rtrs_bench)
rtrs_bench_CPPFLAGS = $(CLT_CPPFLAGS) -I$(top_srcdir)/%D%
rtrs_bench_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
rtrs_bench_LDADD = \
	libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(JANSSON_LIBS)
