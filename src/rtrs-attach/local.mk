# SPDX-License-Identifier: BSD-3-Clause
if BUILD_ATTACH
sbin_PROGRAMS += rtrs-attach rtrs-detach

# What both programs need: the state of a device, its users, and its end.
noinst_LTLIBRARIES += libattach.la
libattach_la_SOURCES = \
	%D%/attach-nbd.c \
	%D%/attach-nbd.h \
	%D%/attach-remove.c \
	%D%/attach-remove.h \
	%D%/attach-state.c \
	%D%/attach-state.h \
	%D%/attach-users.c \
	%D%/attach-users.h \
	$(NULL)
libattach_la_CFLAGS = $(AM_CFLAGS) $(NLGENL_CFLAGS)
libattach_la_LIBADD = $(NLGENL_LIBS)
endif

rtrs_attach_SOURCES = $(FILES_src_rtrs_attach)
rtrs_attach_CPPFLAGS = $(RELAY_CPPFLAGS) -I$(top_srcdir)/%D% -DSYSCONFDIR='"$(sysconfdir)"'
rtrs_attach_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS)
rtrs_attach_LDADD = \
	libattach.la librelay.la libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libjournal.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la \
	$(JANSSON_LIBS) $(SYSTEMD_LIBS)

rtrs_detach_SOURCES = %D%/detach.c
rtrs_detach_LDADD = libattach.la libopt.la libbase.la libclock.la
