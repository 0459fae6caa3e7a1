# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libbase.la libworker.la libclock.la libloop.la libfab.la librtrs.la librnbd.la libctl.la \
	libopt.la libmetrics.la libpsk.la libsecrets.la libauth.la

libbase_la_SOURCES = $(FILES_src_common_base)

# Apart from libbase so that the simulation can bring its own time, chance and worker, and tests
# their own time.
libclock_la_SOURCES = %D%/base/clock.c %D%/base/random.c
libclock_la_LIBADD = libworker.la
libworker_la_SOURCES = %D%/base/worker.c

# One of the loops: the server and the simulation have others.
libloop_la_SOURCES = %D%/base/loop-poll.c

libfab_la_SOURCES = $(FILES_src_common_fabric) $(FILES_src_common_fabric_tcp)

if HAVE_RDMA
libfab_la_SOURCES += $(FILES_src_common_fabric_verbs)
endif
libfab_la_CFLAGS = $(AM_CFLAGS) $(RDMA_CFLAGS) $(GNUTLS_CFLAGS)
libfab_la_LIBADD = libsecrets.la $(RDMA_LIBS) $(GNUTLS_LIBS)

# Files of keys, without certificates and GnuTLS.
libpsk_la_SOURCES = %D%/secrets/psk.c %D%/secrets/psk.h

libsecrets_la_SOURCES = $(FILES_src_common_secrets)
libsecrets_la_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
libsecrets_la_LIBADD = libpsk.la $(GNUTLS_LIBS)

# Authentication in messages: pure.
libauth_la_SOURCES = $(FILES_src_common_auth)
libauth_la_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS) $(NETTLE_CFLAGS)
libauth_la_LIBADD = $(GNUTLS_LIBS) $(NETTLE_LIBS)

librtrs_la_SOURCES = $(FILES_src_common_rtrs)
librtrs_la_CFLAGS = $(AM_CFLAGS) $(ISAL_CFLAGS)
librtrs_la_LIBADD = $(ISAL_LIBS)

librnbd_la_SOURCES = $(FILES_src_common_rnbd)
librnbd_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
librnbd_la_LIBADD = $(ZLIB_LIBS)

libopt_la_SOURCES = $(FILES_src_common_opt)

libctl_la_SOURCES = $(FILES_src_common_ctl)
libctl_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libctl_la_LIBADD = $(JANSSON_LIBS)

libmetrics_la_SOURCES = $(FILES_src_common_metrics)
nodist_libmetrics_la_SOURCES = %D%/metrics/metric-page.c
libmetrics_la_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS)
libmetrics_la_LIBADD = $(MICROHTTPD_LIBS)

# The page as a constant: a line of C for each line.
%D%/metrics/metric-page.c: $(srcdir)/%D%/metrics/metric-page.html $(srcdir)/%D%/local.mk
	$(AM_V_GEN)$(MKDIR_P) %D%/metrics && { \
		echo '/* Made from metric-page.html. */'; \
		echo '#include "metrics.h"'; \
		echo 'const char metric_page[] ='; \
		sed -e 's/[\\"]/\\&/g' -e 's/	/\\t/g' -e 's/^/	"/' -e 's/$$/\\n"/' \
			$(srcdir)/%D%/metrics/metric-page.html; \
		echo '	;'; \
	} >$@.t && mv $@.t $@
CLEANFILES += %D%/metrics/metric-page.c

if BUILD_GATEWAY
noinst_LTLIBRARIES += libjournal.la
endif
libjournal_la_SOURCES = $(FILES_src_common_journal)
libjournal_la_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
libjournal_la_LIBADD = libbase.la $(SYSTEMD_LIBS)
