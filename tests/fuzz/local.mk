# SPDX-License-Identifier: BSD-3-Clause
# make check runs FUZZ_RUNS=20000 inputs; make check-fuzz each target for FUZZ_SECONDS=60, best with
# libFuzzer: ../configure CC=clang --enable-fuzzers --enable-sanitizers=address,undefined
TEST_EXTENSIONS += .fuzz
FUZZ_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-fuzz.sh

check_PROGRAMS += $(FUZZ_TARGETS)
TESTS += $(FUZZ_TARGETS)

if LIBFUZZER
FUZZ_MAIN =
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
else
FUZZ_MAIN = libreplay.la
FUZZ_LINK = $(AM_LDFLAGS)
endif

EXTRA_PROGRAMS += $(FUZZ_TOOLS)
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
