# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libbase.la libworker.la libclock.la libloop.la libfab.la librtrs.la librnbd.la libctl.la \
	libopt.la libmetrics.la libpsk.la libsecrets.la libauth.la

libbase_la_SOURCES = \
	%D%/base/aside.c \
	%D%/base/aside.h \
	%D%/base/be.h \
	%D%/base/bitmap.c \
	%D%/base/bitmap.h \
	%D%/base/changes.c \
	%D%/base/changes.h \
	%D%/base/cleanup.h \
	%D%/base/clock.h \
	%D%/base/counter.h \
	%D%/base/end.c \
	%D%/base/end.h \
	%D%/base/exit-status.h \
	%D%/base/files-age.c \
	%D%/base/files-age.h \
	%D%/base/fmt.c \
	%D%/base/fmt.h \
	%D%/base/fsm.c \
	%D%/base/fsm.h \
	%D%/base/hist.c \
	%D%/base/hist.h \
	%D%/base/acceptor.c \
	%D%/base/acceptor.h \
	%D%/base/fds.c \
	%D%/base/fds.h \
	%D%/base/index.c \
	%D%/base/index.h \
	%D%/base/intern.c \
	%D%/base/intern.h \
	%D%/base/io-stat.c \
	%D%/base/io-stat.h \
	%D%/base/unproven.c \
	%D%/base/unproven.h \
	%D%/base/deal.h \
	%D%/base/le.h \
	%D%/base/list.h \
	%D%/base/lock-file.c \
	%D%/base/lock-file.h \
	%D%/base/log-id.c \
	%D%/base/log-id.h \
	%D%/base/log-queue.c \
	%D%/base/log-queue.h \
	%D%/base/log.c \
	%D%/base/log.h \
	%D%/base/loop-call.c \
	%D%/base/loop-call.h \
	%D%/base/loop-impl.h \
	%D%/base/loop.c \
	%D%/base/loop.h \
	%D%/base/machine.c \
	%D%/base/machine.h \
	%D%/base/mask.c \
	%D%/base/mask.h \
	%D%/base/number.c \
	%D%/base/number.h \
	%D%/base/plain-file.c \
	%D%/base/plain-file.h \
	%D%/base/probe.h \
	%D%/base/random.h \
	%D%/base/range.c \
	%D%/base/range.h \
	%D%/base/rundir.c \
	%D%/base/rundir.h \
	%D%/base/bucket.c \
	%D%/base/bucket.h \
	%D%/base/secret.c \
	%D%/base/secret.h \
	%D%/base/share.h \
	%D%/base/signals.c \
	%D%/base/signals.h \
	%D%/base/size.c \
	%D%/base/size.h \
	%D%/base/std-fds.c \
	%D%/base/std-fds.h \
	%D%/base/suggest.c \
	%D%/base/suggest.h \
	%D%/base/unix-sock.c \
	%D%/base/unix-sock.h \
	%D%/base/slots.h \
	%D%/base/spin.c \
	%D%/base/spin.h \
	%D%/base/util.h \
	%D%/base/worker.h \
	$(NULL)

# Apart from libbase so that the simulation can bring its own time, chance and worker, and tests
# their own time.
libclock_la_SOURCES = %D%/base/clock.c %D%/base/random.c
libclock_la_LIBADD = libworker.la
libworker_la_SOURCES = %D%/base/worker.c

# One of the loops: the server and the simulation have others.
libloop_la_SOURCES = %D%/base/loop-poll.c %D%/base/loop-poll.h

libfab_la_SOURCES = \
	%D%/fabric/fab-addr.c \
	%D%/fabric/fab-io.h \
	%D%/fabric/fab-devices.h \
	%D%/fabric/fab-mem.c \
	%D%/fabric/fab-mtu.c \
	%D%/fabric/fab-names.c \
	%D%/fabric/fab-names.h \
	%D%/fabric/fab-provider.h \
	%D%/fabric/fab-service.c \
	%D%/fabric/fab-service.h \
	%D%/fabric/fab-ktls.c \
	%D%/fabric/fab-ktls.h \
	%D%/fabric/fab-tls-priv.h \
	%D%/fabric/fab-tls-session.c \
	%D%/fabric/fab-tls-session.h \
	%D%/fabric/fab-tls-stream.c \
	%D%/fabric/fab-tls-stream.h \
	%D%/fabric/fab-tls.c \
	%D%/fabric/fab-tls.h \
	%D%/fabric/fab-users.c \
	%D%/fabric/fabric.c \
	%D%/fabric/fabric.h \
	%D%/fabric/tcp/tcp-aside.c \
	%D%/fabric/tcp/tcp-aside.h \
	%D%/fabric/tcp/tcp-cm.c \
	%D%/fabric/tcp/tcp-cm.h \
	%D%/fabric/tcp/tcp-conn.c \
	%D%/fabric/tcp/tcp-conn.h \
	%D%/fabric/tcp/tcp-frame.h \
	%D%/fabric/tcp/tcp-hs-connect.c \
	%D%/fabric/tcp/tcp-hs-connect.h \
	%D%/fabric/tcp/tcp-hs-frame.c \
	%D%/fabric/tcp/tcp-hs-frame.h \
	%D%/fabric/tcp/tcp-hs-tls.c \
	%D%/fabric/tcp/tcp-hs-tls.h \
	%D%/fabric/tcp/tcp-hs-why.c \
	%D%/fabric/tcp/tcp-hs-why.h \
	%D%/fabric/tcp/tcp-hs.c \
	%D%/fabric/tcp/tcp-key.c \
	%D%/fabric/tcp/tcp-key.h \
	%D%/fabric/tcp/tcp-listen.c \
	%D%/fabric/tcp/tcp-mr.c \
	%D%/fabric/tcp/tcp-mw.c \
	%D%/fabric/tcp/tcp-pd.c \
	%D%/fabric/tcp/tcp-qp.c \
	%D%/fabric/tcp/tcp-qp.h \
	%D%/fabric/tcp/tcp-rx.c \
	%D%/fabric/tcp/tcp-stream.h \
	%D%/fabric/tcp/tcp-ktls.c \
	%D%/fabric/tcp/tcp-ktls.h \
	%D%/fabric/tcp/tcp-tls.c \
	%D%/fabric/tcp/tcp-tls.h \
	%D%/fabric/tcp/tcp-tx.c \
	%D%/fabric/tcp/tcp.c \
	$(NULL)

if HAVE_RDMA
libfab_la_SOURCES += \
	%D%/fabric/verbs/verbs-cm.c \
	%D%/fabric/verbs/verbs-conn.c \
	%D%/fabric/verbs/verbs-dev.c \
	%D%/fabric/verbs/verbs-devices.c \
	%D%/fabric/verbs/verbs-event.c \
	%D%/fabric/verbs/verbs-listen.c \
	%D%/fabric/verbs/verbs-mr.c \
	%D%/fabric/verbs/verbs-mw.c \
	%D%/fabric/verbs/verbs-pd.c \
	%D%/fabric/verbs/verbs-poll.c \
	%D%/fabric/verbs/verbs-post.c \
	%D%/fabric/verbs/verbs-priv.h \
	%D%/fabric/verbs/verbs-reap.c \
	$(NULL)
endif
libfab_la_CFLAGS = $(AM_CFLAGS) $(RDMA_CFLAGS) $(GNUTLS_CFLAGS)
libfab_la_LIBADD = libsecrets.la $(RDMA_LIBS) $(GNUTLS_LIBS)

# Files of keys, without certificates and GnuTLS.
libpsk_la_SOURCES = \
	%D%/secrets/psk.c \
	%D%/secrets/psk.h \
	%D%/secrets/secret-file.c \
	%D%/secrets/secret-file.h \
	%D%/secrets/secret-name.c \
	%D%/secrets/secret-name.h \
	$(NULL)

libsecrets_la_SOURCES = \
	%D%/secrets/cert-names.c \
	%D%/secrets/cert-names.h \
	%D%/secrets/certs.c \
	%D%/secrets/certs.h \
	%D%/secrets/secrets-change.c \
	%D%/secrets/secrets-change.h \
	%D%/secrets/secrets-look.c \
	%D%/secrets/secrets-look.h \
	%D%/secrets/secrets-set.c \
	%D%/secrets/secrets-set.h \
	%D%/secrets/secrets.c \
	%D%/secrets/secrets.h \
	$(NULL)
libsecrets_la_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
libsecrets_la_LIBADD = libpsk.la $(GNUTLS_LIBS)

# Authentication in messages: pure.
libauth_la_SOURCES = \
	%D%/auth/auth-chap.c \
	%D%/auth/auth-chap.h \
	%D%/auth/auth-conn.c \
	%D%/auth/auth-conn.h \
	%D%/auth/auth-creds.c \
	%D%/auth/auth-creds.h \
	%D%/auth/auth-crypto.c \
	%D%/auth/auth-crypto.h \
	%D%/auth/auth-key.c \
	%D%/auth/auth-key.h \
	%D%/auth/auth-msg.h \
	$(NULL)
libauth_la_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS) $(NETTLE_CFLAGS)
libauth_la_LIBADD = $(GNUTLS_LIBS) $(NETTLE_LIBS)

librtrs_la_SOURCES = \
	%D%/rtrs/rtrs-geom.c \
	%D%/rtrs/rtrs-geom.h \
	%D%/rtrs/rtrs-hb.c \
	%D%/rtrs/rtrs-hb.h \
	%D%/rtrs/rtrs-imm.h \
	%D%/rtrs/rtrs-msg.c \
	%D%/rtrs/rtrs-msg.h \
	%D%/rtrs/rtrs-proto.h \
	%D%/rtrs/rtrs-req.c \
	%D%/rtrs/rtrs-req.h \
	%D%/rtrs/rtrs-wr.c \
	%D%/rtrs/rtrs-wr.h \
	$(NULL)

librnbd_la_SOURCES = \
	%D%/rnbd/rnbd-extents.c \
	%D%/rnbd/rnbd-extents.h \
	%D%/rnbd/rnbd-list.c \
	%D%/rnbd/rnbd-list.h \
	%D%/rnbd/rnbd-msg.c \
	%D%/rnbd/rnbd-msg.h \
	%D%/rnbd/rnbd-proto.h \
	$(NULL)
librnbd_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
librnbd_la_LIBADD = $(ZLIB_LIBS)

libopt_la_SOURCES = \
	%D%/opt/opt-argv.c \
	%D%/opt/opt-dir.c \
	%D%/opt/opt-dir.h \
	%D%/opt/opt-file.c \
	%D%/opt/opt-file.h \
	%D%/opt/opt-line.c \
	%D%/opt/opt-line.h \
	%D%/opt/opt-help.c \
	%D%/opt/opt-value.c \
	%D%/opt/opt.h \
	$(NULL)

libctl_la_SOURCES = \
	%D%/ctl/ctl-call.c \
	%D%/ctl/ctl-call.h \
	%D%/ctl/ctl-client.c \
	%D%/ctl/ctl-client.h \
	%D%/ctl/ctl-json.c \
	%D%/ctl/ctl-json.h \
	%D%/ctl/ctl-secrets.c \
	%D%/ctl/ctl-secrets.h \
	%D%/ctl/ctl-stat.c \
	%D%/ctl/ctl-stat.h \
	%D%/ctl/ctl.c \
	%D%/ctl/ctl.h \
	$(NULL)
libctl_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libctl_la_LIBADD = $(JANSSON_LIBS)

libmetrics_la_SOURCES = \
	%D%/metrics/metric-conf.c \
	%D%/metrics/metric-conf.h \
	%D%/metrics/metric-file.c \
	%D%/metrics/metric-file.h \
	%D%/metrics/metric-accept.c \
	%D%/metrics/metric-accept.h \
	%D%/metrics/metric-host.c \
	%D%/metrics/metric-host.h \
	%D%/metrics/metric-http.c \
	%D%/metrics/metric-http.h \
	%D%/metrics/metric-page.h \
	%D%/metrics/metric-sock.c \
	%D%/metrics/metric-sock.h \
	%D%/metrics/metric.c \
	%D%/metrics/metric.h \
	%D%/metrics/metrics.c \
	%D%/metrics/metrics.h \
	$(NULL)
nodist_libmetrics_la_SOURCES = %D%/metrics/metric-page.c
libmetrics_la_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS)
libmetrics_la_LIBADD = $(MICROHTTPD_LIBS)

# The page as a constant: a line of C for each line.
%D%/metrics/metric-page.c: $(srcdir)/%D%/metrics/metric-page.html $(srcdir)/%D%/local.mk
	$(AM_V_GEN)$(MKDIR_P) %D%/metrics && { \
		echo '/* Made from metric-page.html. */'; \
		echo '#include "metric-page.h"'; \
		echo 'const char metric_page[] ='; \
		sed -e 's/[\\"]/\\&/g' -e 's/	/\\t/g' -e 's/^/	"/' -e 's/$$/\\n"/' \
			$(srcdir)/%D%/metrics/metric-page.html; \
		echo '	;'; \
	} >$@.t && mv $@.t $@
CLEANFILES += %D%/metrics/metric-page.c
EXTRA_DIST += %D%/metrics/metric-page.html

if BUILD_GATEWAY
noinst_LTLIBRARIES += libjournal.la
endif
libjournal_la_SOURCES = %D%/journal/journal.c %D%/journal/journal.h
libjournal_la_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
libjournal_la_LIBADD = libbase.la $(SYSTEMD_LIBS)
