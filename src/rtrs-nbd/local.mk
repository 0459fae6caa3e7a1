# SPDX-License-Identifier: BSD-3-Clause
if BUILD_GATEWAY
bin_PROGRAMS += rtrs-nbd
endif

rtrs_nbd_SOURCES = $(FILES_src_rtrs_nbd)
rtrs_nbd_CPPFLAGS = $(RELAY_CPPFLAGS) -I$(top_srcdir)/%D%
rtrs_nbd_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS)
rtrs_nbd_LDADD = \
	librelay.la libcltkit.la libclt.la libcltloop.la libctl.la libopt.la libjournal.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(JANSSON_LIBS) $(SYSTEMD_LIBS)
