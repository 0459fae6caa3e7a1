# SPDX-License-Identifier: BSD-3-Clause
# A fuzz target X is fuzz-X.c and corpus/X.  Add its name to FUZZ_TARGETS, and below its _SOURCES,
# _LDADD (its libraries, then $(FUZZ_MAIN)) and _LDFLAGS = $(FUZZ_LINK).
#
# make check runs FUZZ_RUNS=20000 inputs; make check-fuzz each target for FUZZ_SECONDS=60, best with
# libFuzzer: ../configure CC=clang --enable-fuzzers --enable-sanitizers=address,undefined
EXTRA_DIST += %D%/corpus tests/run-fuzz.sh tests/run-fuzz-many.sh
TEST_EXTENSIONS += .fuzz
FUZZ_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-fuzz.sh

FUZZ_TARGETS = \
	%D%/fuzz-auth.fuzz \
	%D%/fuzz-ctl.fuzz \
	%D%/fuzz-nbd.fuzz \
	%D%/fuzz-rnbd-msg.fuzz \
	%D%/fuzz-rtrs-msg.fuzz \
	%D%/fuzz-rtrs-req.fuzz \
	%D%/fuzz-rtrsctl.fuzz \
	%D%/fuzz-tcp-stream.fuzz \
	%D%/fuzz-tls-stream.fuzz \
	$(NULL)
check_PROGRAMS += $(FUZZ_TARGETS)
TESTS += $(FUZZ_TARGETS)

check_LTLIBRARIES += libreplay.la
libreplay_la_SOURCES = %D%/fuzz.h %D%/replay-main.c
if LIBFUZZER
FUZZ_MAIN =
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
else
FUZZ_MAIN = libreplay.la
FUZZ_LINK = $(AM_LDFLAGS)
endif

%C%_fuzz_auth_fuzz_SOURCES = %D%/fuzz-auth.c %D%/fuzz.h
%C%_fuzz_auth_fuzz_LDADD = libauth.la libsecrets.la libbase.la libclock.la $(FUZZ_MAIN)
%C%_fuzz_auth_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_ctl_fuzz_SOURCES = %D%/fuzz-ctl.c %D%/fuzz.h
%C%_fuzz_ctl_fuzz_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
%C%_fuzz_ctl_fuzz_LDADD = libctl.la libbase.la $(JANSSON_LIBS) $(FUZZ_MAIN)
%C%_fuzz_ctl_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_nbd_fuzz_SOURCES = %D%/fuzz-nbd.c %D%/fuzz.h tests/unit/nbd-rig.c tests/unit/nbd-rig.h
%C%_fuzz_nbd_fuzz_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_fuzz_nbd_fuzz_LDADD = libnbdsrv.la libbase.la $(FUZZ_MAIN)
%C%_fuzz_nbd_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_rnbd_msg_fuzz_SOURCES = %D%/fuzz-rnbd-msg.c %D%/fuzz.h
%C%_fuzz_rnbd_msg_fuzz_LDADD = librnbd.la $(FUZZ_MAIN)
%C%_fuzz_rnbd_msg_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_rtrs_msg_fuzz_SOURCES = %D%/fuzz-rtrs-msg.c %D%/fuzz.h
%C%_fuzz_rtrs_msg_fuzz_LDADD = librtrs.la $(FUZZ_MAIN)
%C%_fuzz_rtrs_msg_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_rtrs_req_fuzz_SOURCES = %D%/fuzz-rtrs-req.c %D%/fuzz.h
%C%_fuzz_rtrs_req_fuzz_LDADD = librtrs.la $(FUZZ_MAIN)
%C%_fuzz_rtrs_req_fuzz_LDFLAGS = $(FUZZ_LINK)

# What rtrsctl is, but for its command line.
%C%_fuzz_rtrsctl_fuzz_SOURCES = \
	%D%/fuzz-rtrsctl.c \
	%D%/fuzz.h \
	src/rtrsctl/answer.c \
	src/rtrsctl/call.c \
	src/rtrsctl/check.c \
	src/rtrsctl/clients-nbd.c \
	src/rtrsctl/clients.c \
	src/rtrsctl/explain.c \
	src/rtrsctl/rate.c \
	src/rtrsctl/state.c \
	src/rtrsctl/status.c \
	src/rtrsctl/text.c \
	src/rtrsctl/width.c \
	$(NULL)
%C%_fuzz_rtrsctl_fuzz_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/rtrsctl
%C%_fuzz_rtrsctl_fuzz_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
%C%_fuzz_rtrsctl_fuzz_LDADD = libctl.la libbase.la libclock.la $(JANSSON_LIBS) $(FUZZ_MAIN)
%C%_fuzz_rtrsctl_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_tcp_stream_fuzz_SOURCES = %D%/fuzz-tcp-stream.c %D%/fuzz.h
%C%_fuzz_tcp_stream_fuzz_LDADD = libfab.la libclock.la libbase.la $(FUZZ_MAIN)
%C%_fuzz_tcp_stream_fuzz_LDFLAGS = $(FUZZ_LINK)

%C%_fuzz_tls_stream_fuzz_SOURCES = \
	%D%/fuzz-tls-stream.c \
	%D%/fuzz.h \
	%D%/tls-end.c \
	%D%/tls-message.c \
	%D%/tls-peer.c \
	%D%/tls-rig.h \
	%D%/tls-sides.c \
	%D%/tls-wire.c \
	$(NULL)
%C%_fuzz_tls_stream_fuzz_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
%C%_fuzz_tls_stream_fuzz_LDADD = libfab.la libclock.la libbase.la $(GNUTLS_LIBS) $(FUZZ_MAIN)
%C%_fuzz_tls_stream_fuzz_LDFLAGS = $(FUZZ_LINK) -Wl,--wrap=fab_tls_session

EXTRA_PROGRAMS = %D%/make-corpus
%C%_make_corpus_SOURCES = %D%/make-corpus.c
%C%_make_corpus_LDADD = librtrs.la librnbd.la
CLEANFILES += %D%/make-corpus

FUZZ_SECONDS = 60
.PHONY: check-fuzz
check-fuzz: $(FUZZ_TARGETS)
	@for target in $(FUZZ_TARGETS); do \
		echo "$$target"; \
		srcdir='$(srcdir)' FUZZ_RUNS=-1 FUZZ_SEED=$$$$ FUZZ_TIMEOUT=$$(($(FUZZ_SECONDS) + 120)) \
		FUZZ_FLAGS=-max_total_time=$(FUZZ_SECONDS) \
		$(SHELL) $(top_srcdir)/tests/run-fuzz.sh ./$$target || exit 1; \
	done

# Many inputs of a client of rtrs-nbd: without sanitizers libFuzzer runs three times as many a second.
FUZZ_NBD_RUNS = 10000000
.PHONY: check-fuzz-nbd
check-fuzz-nbd: %D%/fuzz-nbd.fuzz
	srcdir='$(srcdir)' FUZZ_TIMEOUT=28800 FUZZ_FLAGS=-max_len=400 \
		$(SHELL) $(top_srcdir)/tests/run-fuzz-many.sh ./%D%/fuzz-nbd.fuzz $(FUZZ_NBD_RUNS)

# Somebody on the wire of TLS.
FUZZ_TLS_RUNS = 10000000
.PHONY: check-fuzz-tls
check-fuzz-tls: %D%/fuzz-tls-stream.fuzz
	srcdir='$(srcdir)' FUZZ_TIMEOUT=86400 FUZZ_FLAGS=-max_len=200 \
		$(SHELL) $(top_srcdir)/tests/run-fuzz-many.sh ./%D%/fuzz-tls-stream.fuzz \
		$(FUZZ_TLS_RUNS)

# Somebody between two ends, at length: many inputs, and the attacker of the unit tests deeper.
FUZZ_AUTH_RUNS = 10000000
.PHONY: check-auth
check-auth: %D%/fuzz-auth.fuzz tests/unit/test-auth-attacker.crit
	AUTH_DEPTH=4 AUTH_SPLICE_DEPTH=2 AUTH_WALKS=200000 ./tests/unit/test-auth-attacker.crit
	srcdir='$(srcdir)' FUZZ_TIMEOUT=28800 \
		$(SHELL) $(top_srcdir)/tests/run-fuzz-many.sh ./%D%/fuzz-auth.fuzz $(FUZZ_AUTH_RUNS)

.PHONY: fuzz-corpus
fuzz-corpus: %D%/make-corpus
	./%D%/make-corpus $(top_srcdir)/%D%/corpus
