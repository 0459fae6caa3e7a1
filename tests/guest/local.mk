# SPDX-License-Identifier: BSD-3-Clause
# Tests that need a kernel of their own: make check-guest runs them in QEMU guests.
GUEST_TESTS = \
	%D%/test-apparmor.sh \
	%D%/test-auth-rdma.sh \
	%D%/test-break-device.sh \
	%D%/test-cells.sh \
	%D%/test-fabric.sh \
	%D%/test-frwr.sh \
	%D%/test-hostile-rdma.sh \
	%D%/test-idle-rdma.sh \
	%D%/test-invalidate-rdma.sh \
	%D%/test-t27-kernel-client.sh \
	%D%/test-kernel-client-faults.sh \
	%D%/test-kernel-client-priority.sh \
	%D%/test-p28-p31-kernel-client.sh \
	%D%/test-p32-siw.sh \
	%D%/test-p41-kernel-client-policy.sh \
	%D%/test-t27-plugin-kernel.sh \
	%D%/test-plugin-rdma.sh \
	%D%/test-plugin-window.sh \
	%D%/test-probes-seen.sh \
	%D%/test-qemu-boot.sh \
	%D%/test-listen-rdma.sh \
	%D%/test-ktls.sh \
	%D%/test-libvirt.sh \
	%D%/test-ktls-fabric.sh \
	%D%/test-late-copy.sh \
	%D%/test-lock.sh \
	%D%/test-multipath.sh \
	%D%/test-nbd-device.sh \
	%D%/test-nbd-fronts.sh \
	%D%/test-nbd-fronts-rdma.sh \
	%D%/test-nbd-fs.sh \
	%D%/test-nbd-persist.sh \
	%D%/test-paths-rack.sh \
	%D%/test-paths-rdma.sh \
	%D%/test-rack.sh \
	%D%/test-rdma-device.sh \
	%D%/test-reservation.sh \
	%D%/test-run.sh \
	%D%/test-shared-device.sh \
	%D%/test-storage-table.sh \
	%D%/test-units.sh \
	$(NULL)

# For people: it stops a guest.
MANUAL_GUEST_TESTS = \
	%D%/manual-t28-double-invalidate.sh \
	$(NULL)

EXTRA_DIST += \
	$(GUEST_TESTS) \
	$(MANUAL_GUEST_TESTS) \
	%D%/agent.sh \
	%D%/init \
	%D%/inside.sh \
	%D%/kernel-log.sh \
	%D%/lib.sh \
	%D%/nbd-keep.py \
	%D%/prepare.sh \
	%D%/qemu.sh \
	%D%/rack.sh \
	%D%/run-tests.sh \
	%D%/run.sh \
	%D%/shared-disk.sh \
	%D%/stage2.sh \
	%D%/storage-client.py \
	%D%/storage-rows.sh \
	$(NULL)
CLEANFILES += $(GUEST_TESTS:.sh=.log) $(GUEST_TESTS:.sh=.trs)

# One of the two hosts of test-reservation.sh.
if BUILD_SERVER
check_PROGRAMS += %D%/pr-host
%C%_pr_host_SOURCES = %D%/pr-host.c
%C%_pr_host_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_pr_host_CFLAGS = $(AM_CFLAGS) $(LIBURING_CFLAGS)
%C%_pr_host_LDADD = librtrssrv.la librnbd.la libbase.la libclock.la $(LIBURING_LIBS) $(ZLIB_LIBS)
endif

# The logs are newer than the scripts then, so that automake only counts them.
.PHONY: check-guest
check-guest:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS) $(check_DATA)
	rm -f $(TEST_SUITE_LOG)
	srcdir='$(srcdir)'; bash "$$srcdir/tests/guest/run-tests.sh" \
		$$(for t in $(GUEST_TESTS); do echo "$$srcdir/$$t"; done)
	$(MAKE) $(AM_MAKEFLAGS) $(TEST_SUITE_LOG) TESTS="$(GUEST_TESTS)"
