# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += rtrs-bench

rtrs_bench_SOURCES = \
	%D%/lat.c \
	%D%/lat.h \
	%D%/load.c \
	%D%/load.h \
	%D%/look.c \
	%D%/look.h \
	%D%/options.c \
	%D%/options.h \
	%D%/progress.c \
	%D%/progress.h \
	%D%/report.c \
	%D%/report.h \
	%D%/rtrs-bench.c \
	%D%/target.c \
	%D%/target.h \
	%D%/verify.c \
	%D%/verify.h \
	$(NULL)
rtrs_bench_CPPFLAGS = $(CLT_CPPFLAGS) -I$(top_srcdir)/%D%
rtrs_bench_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
rtrs_bench_LDADD = \
	libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(JANSSON_LIBS)
