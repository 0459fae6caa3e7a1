# SPDX-License-Identifier: BSD-3-Clause
if BUILD_ATTACH
sbin_PROGRAMS += rtrs-attach
noinst_SCRIPTS += rtrs-detach
endif

rtrs_attach_SOURCES = $(FILES_src_rtrs_attach)
if HAVE_LIBURING
rtrs_attach_SOURCES += %D%/via-ublk.c
ATTACH_UBLK = libublk.la libublkring.la
endif
rtrs_attach_CPPFLAGS = $(RELAY_CPPFLAGS) $(UBLK_CPPFLAGS) -I$(top_srcdir)/%D% -DSYSCONFDIR='"$(sysconfdir)"'
rtrs_attach_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) $(NLGENL_CFLAGS)
rtrs_attach_LDADD = \
	$(ATTACH_UBLK) librelay.la libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libjournal.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la \
	$(JANSSON_LIBS) $(SYSTEMD_LIBS) $(NLGENL_LIBS)

# One program under two names.
rtrs-detach: rtrs-attach$(EXEEXT)
	$(AM_V_GEN)rm -f $@ && $(LN_S) rtrs-attach$(EXEEXT) $@
CLEANFILES += rtrs-detach
