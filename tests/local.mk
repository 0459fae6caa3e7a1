# SPDX-License-Identifier: BSD-3-Clause
# Integration tests: nbdkit and rtrs-server over tcp, one behaviour each, in the top build directory.
TEST_EXTENSIONS += .sh
# A test has time-outs of its own; this one is for what they did not foresee.
SH_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-test.sh bash
# Programs.
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-test.sh
AM_TESTS_ENVIRONMENT = SANITIZERS='$(SANITIZERS)'; export SANITIZERS;

TESTS += $(SHELL_TESTS)

# Made anew when functions.sh.in has changed.
check_DATA += %D%/functions.sh %D%/speed
CLEANFILES += %D%/speed
%D%/speed: $(srcdir)/%D%/speed.sh
	bash $(srcdir)/%D%/speed.sh >$@.new && mv $@.new $@
# See there.  -rpath makes it a shared object.
if SANITIZE
check_LTLIBRARIES += san-first.la
san_first_la_SOURCES = %D%/san-first.c
san_first_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -Wl,-z,initfirst
endif

if BUILD_SERVER
check_LTLIBRARIES += valgrind-uring.la
valgrind_uring_la_SOURCES = %D%/valgrind-uring.c
valgrind_uring_la_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
valgrind_uring_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
valgrind_uring_la_LIBADD = $(LIBURING_LIBS)

check_LTLIBRARIES += forbidden-calls.la
forbidden_calls_la_SOURCES = %D%/forbidden-calls.c
forbidden_calls_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
endif

check_LTLIBRARIES += slow-sigwait.la
slow_sigwait_la_SOURCES = %D%/slow-sigwait.c
slow_sigwait_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

# What make check has and that takes less than a minute: the units, the simulation, and the scripts that see the most
# mutants (tests/mutants) a second.
FAST_TESTS = \
	$(UNIT_TESTS) \
	$(FRWR_TESTS) \
	$(FABRIC_TESTS) \
	$(SIM_PLAIN_TESTS) \
	%D%/test-completion.sh \
	%D%/test-device-in-use.sh \
	%D%/test-docs.sh \
	%D%/test-house.sh \
	%D%/test-multi-conn.sh \
	%D%/test-mutants.sh \
	%D%/test-rtrs-bench.sh \
	%D%/test-rtrsctl.sh \
	%D%/test-rtrsctl-client.sh \
	%D%/test-rtrsctl-find.sh \
	%D%/test-server-bad-input.sh \
	%D%/test-unix.sh \
	%D%/test-nbd-gateway.sh \
	%D%/thread/thread-clt-wake \
	$(NULL)
.PHONY: check-fast
check-fast:
	@all="$(TESTS)"; fast=; n=0; m=0; \
	for t in $$all; do m=$$((m + 1)); done; \
	for t in $(FAST_TESTS); do \
		case " $$all " in *" $$t "*) fast="$$fast $$t"; n=$$((n + 1)) ;; esac; \
	done; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS="$$fast" || exit 1; \
	echo "check-fast: $$n tests passed; make check has $$((m - n)) more"

# Integration tests with server and nbdkit in valgrind, unit tests, and what has one thread.
# nbdkit has 33 threads for each connection.  test-export-io and test-export-size read through a ring into fresh
# memory, and valgrind does not see what a ring writes there; test-export-extents makes loop devices by ioctls that
# valgrind does not know, and reports.
NOT_IN_VALGRIND = */test-export-io.crit|*/test-export-size.crit|*/test-export-extents.crit
# Words, so without a space in them; and tests change their directory.  So the suppressions are put where the path is
# absolute and has no space.
VALGRIND_COMMAND = valgrind --quiet --error-exitcode=119 --num-callers=30 --max-threads=2000 \
	--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
	--suppressions=$$supp
TESTS_IN_VALGRIND = $(SHELL_TESTS) $(UNIT_TESTS) $(FABRIC_TESTS) $(SIM_FABRIC_TESTS) \
	$(SIM_PLAIN_TESTS) tests/sim/sim-random.sh $(SIM_NIC_TESTS) $(FRWR_TESTS) tests/frwr/t04-t15-random-frwr tests/frwr/frwr-device
.PHONY: check-valgrind lint trace
check-valgrind:
	@supp=$$(mktemp /tmp/rtrs-valgrind.XXXXXX) && cp $(srcdir)/tests/valgrind.supp "$$supp" && \
		chmod 644 "$$supp" || exit 1; \
	trap 'rm -f "$$supp"' EXIT; \
	tests=; for t in $(TESTS_IN_VALGRIND); do \
		case $$t in $(NOT_IN_VALGRIND)) ;; *) tests="$$tests $$t" ;; esac; \
	done; \
	VALGRIND_TESTS="$(VALGRIND_COMMAND)" SIM_SEEDS=$${SIM_SEEDS-20} FRWR_STEPS=20000 \
		$(MAKE) check TESTS="$$tests"

# In a copy, because a tree that was configured in place refuses other builds.
trace:
	@rm -rf trace && $(MKDIR_P) trace
	@$(MAKE) distdir distdir=trace/source >trace/dist.log 2>&1 || { cat trace/dist.log; exit 1; }
	@cd trace && /usr/bin/python3 source/tests/trace.py source $(TRACE)
	@rm -rf trace

lint: all trace
	bash $(top_srcdir)/build-aux/lint.sh $(top_srcdir) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) \
		$(NBDKIT_CFLAGS) $(LIBURING_CFLAGS) $(SYSTEMD_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
