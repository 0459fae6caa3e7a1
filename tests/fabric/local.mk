# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += fab-conformance
# The suite without the main-*.c that each provider brings.
conformance_sources = \
	tests/fabric/cf-data.c \
	tests/fabric/cf-mw.c \
	tests/fabric/cf-queue.c \
	tests/fabric/cf-setup.c \
	tests/fabric/cf-thread.c \
	tests/fabric/conformance.c \
	tests/fabric/conformance.h \
	tests/fabric/harness.c \
	tests/fabric/harness.h \
	$(NULL)
fab_conformance_SOURCES = $(conformance_sources) %D%/main-tcp.c
fab_conformance_LDADD = libfab.la libclock.la libbase.la

if HAVE_RDMA
# Needs a device: the guests run it.
check_PROGRAMS += fab-conformance-verbs
fab_conformance_verbs_SOURCES = $(conformance_sources) %D%/main-verbs.c
fab_conformance_verbs_LDADD = libfab.la libclock.la libbase.la
endif

dist_check_SCRIPTS += %D%/conformance-tcp.sh

check_PROGRAMS += test-addr test-tcp-aside test-tcp-ktls test-tcp-setup test-tcp-tls test-tcp-wire
FABRIC_TESTS = %D%/conformance-tcp.sh test-addr test-tcp-aside test-tcp-ktls test-tcp-setup test-tcp-tls \
	test-tcp-wire
TESTS += $(FABRIC_TESTS)
raw_sources = \
	tests/fabric/harness.c \
	tests/fabric/harness.h \
	tests/fabric/main-tcp.c \
	tests/fabric/raw.c \
	tests/fabric/raw.h \
	$(NULL)

test_addr_SOURCES = $(raw_sources) %D%/test-addr.c
test_addr_LDADD = libfab.la libclock.la libbase.la

# Without libclock: it brings its own time.
test_tcp_setup_SOURCES = $(raw_sources) %D%/test-tcp-setup.c
test_tcp_setup_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4
test_tcp_setup_LDADD = libfab.la libworker.la libbase.la

# The same, and a peer with GnuTLS.
test_tcp_tls_SOURCES = $(raw_sources) %D%/fake-ktls.h %D%/test-tcp-tls.c
test_tcp_tls_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
test_tcp_tls_LDADD = libfab.la libworker.la libbase.la $(GNUTLS_LIBS)

check_PROGRAMS += auth-flood
auth_flood_SOURCES = $(raw_sources) %D%/auth-flood.c
auth_flood_LDADD = libauth.la librtrs.la libfab.la libpsk.la libclock.la libbase.la

# Steps of TLS's handshakes that are held.
test_tcp_aside_SOURCES = $(raw_sources) %D%/test-tcp-aside.c
test_tcp_aside_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
test_tcp_aside_LDADD = libfab.la libworker.la libbase.la $(GNUTLS_LIBS)
test_tcp_aside_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=tcp_tls_handshake,--wrap=tcp_tls_free,--wrap=tcp_aside_lend

# The same with the records of a kernel that the program brings.
test_tcp_ktls_SOURCES = $(test_tcp_tls_SOURCES) %D%/fake-ktls.c
test_tcp_ktls_CFLAGS = $(test_tcp_tls_CFLAGS)
test_tcp_ktls_LDADD = $(test_tcp_tls_LDADD)
test_tcp_ktls_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=setsockopt,--wrap=getsockopt,--wrap=recvmsg,--wrap=sendmsg,--wrap=poll,--wrap=close

check_PROGRAMS += tls-flood
tls_flood_SOURCES = $(raw_sources) %D%/tls-flood.c
tls_flood_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
tls_flood_LDADD = libfab.la libclock.la libbase.la $(GNUTLS_LIBS)

check_PROGRAMS += stranger-churn
stranger_churn_SOURCES = %D%/stranger-churn.c

test_tcp_wire_SOURCES = $(raw_sources) %D%/test-tcp-wire.c
test_tcp_wire_LDADD = libfab.la libclock.la libbase.la
test_tcp_wire_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recvmsg,--wrap=sendmsg,--wrap=pthread_mutex_lock
