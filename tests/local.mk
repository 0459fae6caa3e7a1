# SPDX-License-Identifier: BSD-3-Clause
# Integration tests: nbdkit and rtrs-server over tcp, one behaviour each, in the top build directory.
TEST_EXTENSIONS += .sh
# A test has time-outs of its own; this one is for what they did not foresee.
SH_LOG_COMPILER = timeout -k 20 400 bash

SHELL_TESTS = \
	%D%/test-allow.sh \
	%D%/test-block-device.sh \
	%D%/test-direct.sh \
	%D%/test-docs.sh \
	%D%/test-durability.sh \
	%D%/test-enospc.sh \
	%D%/test-fio-verify.sh \
	%D%/test-flags.sh \
	%D%/test-io-timeout.sh \
	%D%/test-ipv6.sh \
	%D%/test-large-device.sh \
	%D%/test-large.sh \
	%D%/test-multi-conn.sh \
	%D%/test-nbdcopy.sh \
	%D%/test-nbdinfo.sh \
	%D%/test-past-end.sh \
	%D%/test-plugin-bad-input.sh \
	%D%/test-plugin-killed.sh \
	%D%/test-qemu-img.sh \
	%D%/test-qemu-io.sh \
	%D%/test-readonly.sh \
	%D%/test-ready-fd.sh \
	%D%/test-reboot-flush.sh \
	%D%/test-sd-notify.sh \
	%D%/test-server-bad-input.sh \
	%D%/test-server-no-descriptors.sh \
	%D%/test-server-restart.sh \
	%D%/test-sharing.sh \
	%D%/test-sigstop.sh \
	%D%/test-sigterm-inflight.sh \
	%D%/test-two-exports.sh \
	%D%/test-unaligned.sh \
	%D%/test-unreachable.sh \
	%D%/test-zero-length.sh \
	$(NULL)

TESTS += $(SHELL_TESTS)
EXTRA_DIST += \
	$(SHELL_TESTS) \
	%D%/lsan.supp \
	%D%/tsan.supp \
	%D%/valgrind.supp \
	$(NULL)

# Integration tests with server and nbdkit in valgrind, and unit tests.
.PHONY: check-valgrind lint
check-valgrind:
	VALGRIND_TESTS=1 CRITERION_TIMEOUT=600 $(MAKE) check TESTS="$(SHELL_TESTS) $(UNIT_TESTS)"

lint:
	bash $(top_srcdir)/build-aux/lint.sh $(top_srcdir) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) \
		$(NBDKIT_CFLAGS) $(LIBURING_CFLAGS) $(SYSTEMD_CFLAGS) $(ZLIB_CFLAGS)
