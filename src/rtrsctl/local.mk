# SPDX-License-Identifier: BSD-3-Clause
sbin_PROGRAMS += rtrsctl

rtrsctl_SOURCES = $(FILES_src_rtrsctl)
rtrsctl_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
rtrsctl_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(NCURSES_CFLAGS)
rtrsctl_LDADD = libfab.la libctl.la libopt.la libbase.la libclock.la $(JANSSON_LIBS) $(NCURSES_LIBS)
