# SPDX-License-Identifier: BSD-3-Clause
# Block devices of the kernel's ublk_drv on the client, a library.  libublkring: what speaks to the
# kernel; tests have a kernel of their own.
UBLK_CPPFLAGS = -I$(top_srcdir)/%D%

if HAVE_LIBURING
noinst_LTLIBRARIES += libublk.la libublkring.la

libublk_la_CPPFLAGS = $(CLT_CPPFLAGS) $(UBLK_CPPFLAGS)
libublk_la_SOURCES = $(FILES_src_rtrs_ublk)

libublkring_la_CPPFLAGS = $(AM_CPPFLAGS) $(UBLK_CPPFLAGS)
libublkring_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
libublkring_la_SOURCES = \
	%D%/ublk-kernel.c \
	%D%/ublk-kernel.h \
	$(NULL)
libublkring_la_LIBADD = $(LIBURING_LIBS)
endif
