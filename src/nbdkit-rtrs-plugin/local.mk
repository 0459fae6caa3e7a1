# SPDX-License-Identifier: BSD-3-Clause

if BUILD_PLUGIN
plugin_LTLIBRARIES += nbdkit-rtrs-plugin.la
nbdkit_rtrs_plugin_la_CPPFLAGS = $(CLT_CPPFLAGS) $(NBD_CPPFLAGS)
nbdkit_rtrs_plugin_la_CFLAGS = $(AM_CFLAGS) $(NBDKIT_CFLAGS) $(JANSSON_CFLAGS)
nbdkit_rtrs_plugin_la_SOURCES = $(FILES_src_nbdkit_rtrs_plugin)
# nodelete: log_end() may leave a thread in nbdkit_error().
nbdkit_rtrs_plugin_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete \
	-Wl,--version-script=$(srcdir)/%D%/plugin.syms
nbdkit_rtrs_plugin_la_DEPENDENCIES = %D%/plugin.syms $(nbdkit_rtrs_plugin_la_LIBADD)
nbdkit_rtrs_plugin_la_LIBADD = \
	libcltkit.la libclt.la libcltthread.la libctl.la libloop.la libnbdmsg.la libfab.la librtrs.la librnbd.la libopt.la libbase.la libclock.la \
	$(JANSSON_LIBS)
endif
