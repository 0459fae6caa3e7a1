# SPDX-License-Identifier: BSD-3-Clause
# Integration tests: nbdkit and rtrs-server over tcp, one behaviour each, in the top build directory.
TEST_EXTENSIONS += .sh
# A test has time-outs of its own; this one is for what they did not foresee.
SH_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-test.sh bash
# Programs.
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-test.sh
AM_TESTS_ENVIRONMENT = SANITIZERS='$(SANITIZERS)'; export SANITIZERS;

SHELL_TESTS = \
	%D%/test-allow.sh \
	%D%/test-auth-attack.sh \
	%D%/test-auth-relay.sh \
	%D%/test-auth.sh \
	%D%/test-allow-flood.sh \
	%D%/test-bench.sh \
	%D%/test-block-device.sh \
	%D%/test-budget.sh \
	%D%/test-closed-descriptors.sh \
	%D%/test-come-back.sh \
	%D%/test-completion.sh \
	%D%/test-demo.sh \
	%D%/test-demo-top.sh \
	%D%/test-device-in-use.sh \
	%D%/test-direct.sh \
	%D%/test-docs.sh \
	%D%/test-durability.sh \
	%D%/test-enospc.sh \
	%D%/test-file-limit.sh \
	%D%/test-extents.sh \
	%D%/test-exit-status.sh \
	%D%/test-explain.sh \
	%D%/test-export-allow.sh \
	%D%/test-export-live.sh \
	%D%/test-export-removed.sh \
	%D%/test-doctor.sh \
	%D%/test-doubts.sh \
	%D%/test-examples.sh \
	%D%/test-guide.sh \
	%D%/test-guide-qemu.sh \
	%D%/test-container.sh \
	%D%/test-cpus.sh \
	%D%/test-limits.sh \
	%D%/test-liveness.sh \
	%D%/test-log-stuck.sh \
	%D%/test-long-path.sh \
	%D%/test-reload.sh \
	%D%/test-reload-trust.sh \
	%D%/test-client-reload.sh \
	%D%/test-config-client.sh \
	%D%/test-extents-fuse.sh \
	%D%/test-fuse-errors.sh \
	%D%/test-fuse-refuses.sh \
	%D%/test-fio-verify.sh \
	%D%/test-flags.sh \
	%D%/test-end-bound.sh \
	%D%/test-frozen.sh \
	%D%/test-fua-flushes.sh \
	%D%/test-gateway-config.sh \
	%D%/test-gateway-upgrade.sh \
	%D%/test-give-up-two.sh \
	%D%/test-hangup.sh \
	%D%/test-hardening.sh \
	%D%/test-host-limit.sh \
	%D%/test-identity.sh \
	%D%/test-idle.sh \
	%D%/test-image-format.sh \
	%D%/test-install.sh \
	%D%/test-invalidate-always.sh \
	%D%/test-io-timeout.sh \
	%D%/test-ipv6.sh \
	%D%/test-listen-name.sh \
	%D%/test-journal.sh \
	%D%/test-large-device.sh \
	%D%/test-list-exports.sh \
	%D%/test-lock-replaced.sh \
	%D%/test-locked.sh \
	%D%/test-large.sh \
	%D%/test-late-write.sh \
	%D%/test-lost-flush.sh \
	%D%/test-look-once.sh \
	%D%/test-many.sh \
	%D%/test-mem.sh \
	%D%/test-metrics.sh \
	%D%/test-metrics-client.sh \
	%D%/test-metrics-hostile.sh \
	%D%/test-metrics-page.sh \
	%D%/test-multi-conn.sh \
	%D%/test-names.sh \
	%D%/test-nbd-clients.sh \
	%D%/test-nbd-document.sh \
	%D%/test-nbd-flood.sh \
	%D%/test-nbd-fronts.sh \
	%D%/test-nbd-gateway.sh \
	%D%/test-nbd-hostile.sh \
	%D%/test-nbd-no-descriptors.sh \
	%D%/test-nbd-limits.sh \
	%D%/test-nbd-program.sh \
	%D%/test-nbd-reload.sh \
	%D%/test-nbd-sigterm.sh \
	%D%/test-nbd-soak.sh \
	%D%/test-nbd-sigterm-away.sh \
	%D%/test-nbd-threads.sh \
	%D%/test-nbd-tls.sh \
	%D%/test-nbd-stop-start.sh \
	%D%/test-nbd-tls-churn.sh \
	%D%/test-nbd-tls-hostile.sh \
	%D%/test-nbd-tls-write.sh \
	%D%/test-nbd-upgrade.sh \
	%D%/test-nbdcopy.sh \
	%D%/test-nbdinfo.sh \
	%D%/test-nbdkit-filters.sh \
	%D%/test-nbdkit-messages.sh \
	%D%/test-nbdkit-no-descriptors.sh \
	%D%/test-nbdkit-sigterm.sh \
	%D%/test-nbdkit-sigterm-away.sh \
	%D%/test-nbdkit-sigterm-held.sh \
	%D%/test-nbdkit-sigterm-silent.sh \
	%D%/test-oldest-request.sh \
	%D%/test-past-end.sh \
	%D%/test-path-save.sh \
	%D%/test-paths.sh \
	%D%/test-files-away.sh \
	%D%/test-plain-files.sh \
	%D%/test-paths-leak.sh \
	%D%/test-paths-leak-slow.sh \
	%D%/test-paths-slow.sh \
	%D%/test-paths-start.sh \
	%D%/test-plugin-bad-input.sh \
	%D%/test-plugin-control.sh \
	%D%/test-plugin-killed.sh \
	%D%/test-poll.sh \
	%D%/test-probes.sh \
	%D%/test-prometheus.sh \
	%D%/test-qemu-img.sh \
	%D%/test-qemu-io.sh \
	%D%/test-qemu-storage-daemon.sh \
	%D%/test-quickstart-keep.sh \
	%D%/test-rbd.sh \
	%D%/test-rbd-edges.sh \
	%D%/test-rbd-faults.sh \
	%D%/test-rbd-fenced.sh \
	%D%/test-rbd-keyring.sh \
	%D%/test-rbd-lock.sh \
	%D%/test-rbd-others.sh \
	%D%/test-rbd-shared.sh \
	%D%/test-rbd-silent.sh \
	%D%/test-readme.sh \
	%D%/test-readonly.sh \
	%D%/test-ready-fd.sh \
	%D%/test-reboot-flush.sh \
	%D%/test-registration.sh \
	%D%/test-replaced.sh \
	%D%/test-resize.sh \
	%D%/test-rtrs-bench.sh \
	%D%/test-rtrsctl.sh \
	%D%/test-rtrsctl-check.sh \
	%D%/test-rtrsctl-clients.sh \
	%D%/test-rtrsctl-find.sh \
	%D%/test-rtrsctl-sessions.sh \
	%D%/test-rtrsctl-which.sh \
	%D%/test-rtrsctl-client.sh \
	%D%/test-rtrsctl-status.sh \
	%D%/test-sd-notify.sh \
	%D%/test-seccomp.sh \
	%D%/test-server-accept.sh \
	%D%/test-server-bad-input.sh \
	%D%/test-server-memory.sh \
	%D%/test-server-no-descriptors.sh \
	%D%/test-server-no-io-uring.sh \
	%D%/test-server-restart.sh \
	%D%/test-server-signals.sh \
	%D%/test-server-start.sh \
	%D%/test-server-uid.sh \
	%D%/test-sharing.sh \
	%D%/test-shrink-in-use.sh \
	%D%/test-shrunk.sh \
	%D%/test-sigstop.sh \
	%D%/test-sigterm-inflight.sh \
	%D%/test-source-tree.sh \
	%D%/test-rights.sh \
	%D%/test-rpm.sh \
	%D%/test-snapshot.sh \
	%D%/test-stop-threads.sh \
	%D%/test-storage-away.sh \
	%D%/test-swap-file.sh \
	%D%/test-trim-fuse.sh \
	%D%/test-tls.sh \
	%D%/test-tls-certificates.sh \
	%D%/test-tls-churn.sh \
	%D%/test-tls-dates.sh \
	%D%/test-tls-core.sh \
	%D%/test-tls-fleet.sh \
	%D%/test-tls-flood.sh \
	%D%/test-auth-flood.sh \
	%D%/test-top.sh \
	%D%/test-turns.sh \
	%D%/test-two-exports.sh \
	%D%/test-unaligned.sh \
	%D%/test-unix.sh \
	%D%/test-units.sh \
	%D%/test-unreachable.sh \
	%D%/test-versions.sh \
	%D%/test-wait-until.sh \
	%D%/test-zero-length.sh \
	$(NULL)

TESTS += $(SHELL_TESTS)

# Each pitfall of the protocol has a test, and the checks of numbers (check-frwr-rows.sh, too) find one that
# has none.
TESTS += %D%/check-pitfalls.sh %D%/test-check-numbers.sh
# What is cited stands in doc/.
TESTS += %D%/check-citations.sh %D%/test-check-citations.sh
# And what the walks name stands in src/.
TESTS += %D%/check-walks.sh %D%/test-check-walks.sh
# And each limit of src/ is in doc/limits.md, as it is.
TESTS += %D%/check-limits.sh %D%/test-check-limits.sh
# Each message that matters is logged and told.
TESTS += %D%/check-log-ids.sh
# What users read has the field's words.
TESTS += %D%/check-words.sh %D%/test-check-words.sh
# That what hangs is ended, and named.
TESTS += %D%/test-timeouts.sh
# Made anew when functions.sh.in has changed.
check_DATA += %D%/functions.sh %D%/speed
CLEANFILES += %D%/speed
%D%/speed: $(srcdir)/%D%/speed.sh
	bash $(srcdir)/%D%/speed.sh >$@.new && mv $@.new $@
EXTRA_DIST += \
	$(SHELL_TESTS) \
	%D%/check-citations.sh \
	%D%/check-limits.sh \
	%D%/test-check-limits.sh \
	%D%/check-log-ids.sh \
	%D%/check-words.sh \
	%D%/test-check-words.sh \
	%D%/check-pitfalls.sh \
	%D%/check-walks.sh \
	%D%/test-check-walks.sh \
	%D%/ceph.sh \
	%D%/pki.sh \
	%D%/shared-load.sh \
	%D%/paths-faults.sh \
	%D%/paths-leak.sh \
	%D%/hold-thread.py \
	%D%/fuse-hole.py \
	%D%/libnbd-script.py \
	%D%/libnbd-suite.sh \
	%D%/metrics-hostile.py \
	%D%/auth-attack.py \
	%D%/auth-relay.py \
	%D%/nbd-document.py \
	%D%/nbdkit-filters.py \
	%D%/nbd-flood.py \
	%D%/nbd-hostile.py \
	%D%/nbd-limits.py \
	%D%/paths.py \
	%D%/guide-commands.py \
	%D%/guide-machine.sh \
	%D%/own-namespace.sh \
	%D%/nbd-load.py %D%/nbd-soak.py \
	%D%/delay-relay.py \
	%D%/nbd-tls-hostile.py \
	%D%/prometheus-ask.py \
	%D%/run-test.sh \
	%D%/speed.sh \
	%D%/stop-threads.sh \
	%D%/trace.c \
	%D%/trace.py \
	%D%/test-timeouts.sh \
	%D%/timeout.sh \
	%D%/test-check-citations.sh \
	%D%/test-check-numbers.sh \
	%D%/lsan.supp \
	%D%/tsan.supp \
	%D%/valgrind.supp \
	%D%/versions/commands.sh \
	%D%/versions/control.sh \
	%D%/versions/defaults.py \
	%D%/versions/defaults.sh \
	%D%/versions/identity.sh \
	%D%/versions/io.py \
	%D%/versions/lib.sh \
	%D%/versions/members.py \
	%D%/versions/refusals.sh \
	%D%/versions/state.sh \
	%D%/versions/wire.sh \
	%D%/names.sh \
	%D%/wires.sh \
	$(NULL)

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

# What make check has and that takes less than a minute: the units, the simulation, and the scripts that see the most
# mutants (tests/mutants) a second.
FAST_TESTS = \
	$(UNIT_TESTS) \
	$(FRWR_TESTS) \
	$(FABRIC_TESTS) \
	$(SIM_PLAIN_TESTS) \
	%D%/check-layers.sh \
	%D%/check-limits.sh \
	%D%/check-walks.sh \
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
