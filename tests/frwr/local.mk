# SPDX-License-Identifier: BSD-3-Clause
# src/frwr on an HCA that does not forgive.  test-*.crit are Criterion's.
check_LTLIBRARIES += libfrwrrig.la
libfrwrrig_la_SOURCES = %D%/rig.c %D%/rig.h
FRWR_LIBS = libfrwrrig.la libmockhca.la libfrwr.la libfab.la libbase.la libclock.la

FRWR_TESTS = \
	%D%/test-frwr-fail.crit \
	%D%/test-frwr-lesson.crit \
	%D%/test-frwr-map.crit \
	%D%/test-frwr-server.crit \
	%D%/test-frwr-size.crit \
	%D%/test-frwr-unmap.crit \
	$(NULL)
if HAVE_CRITERION
if !SANITIZE_THREAD
check_PROGRAMS += $(FRWR_TESTS)
TESTS += $(FRWR_TESTS)
endif
endif

%C%_test_frwr_fail_crit_SOURCES = %D%/test-frwr-fail.c
%C%_test_frwr_fail_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_frwr_fail_crit_LDADD = $(FRWR_LIBS) $(CRITERION_LIBS)
%C%_test_frwr_lesson_crit_SOURCES = %D%/test-frwr-lesson.c
%C%_test_frwr_lesson_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_frwr_lesson_crit_LDADD = $(FRWR_LIBS) $(CRITERION_LIBS)
%C%_test_frwr_map_crit_SOURCES = %D%/test-frwr-map.c
%C%_test_frwr_map_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_frwr_map_crit_LDADD = $(FRWR_LIBS) $(CRITERION_LIBS)
%C%_test_frwr_server_crit_SOURCES = %D%/test-frwr-server.c
%C%_test_frwr_server_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_frwr_server_crit_LDADD = $(FRWR_LIBS) $(CRITERION_LIBS)
%C%_test_frwr_size_crit_SOURCES = %D%/test-frwr-size.c
%C%_test_frwr_size_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_frwr_size_crit_LDADD = $(FRWR_LIBS) $(CRITERION_LIBS)
%C%_test_frwr_unmap_crit_SOURCES = %D%/test-frwr-unmap.c
%C%_test_frwr_unmap_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_frwr_unmap_crit_LDADD = $(FRWR_LIBS) $(CRITERION_LIBS)

# Plain programs: a million random steps; threads, for TSan.
FRWR_PLAIN_TESTS = %D%/t04-t15-random-frwr %D%/t15-thread-frwr
check_PROGRAMS += $(FRWR_PLAIN_TESTS)
TESTS += $(FRWR_PLAIN_TESTS)
%C%_t04_t15_random_frwr_SOURCES = %D%/t04-t15-random-frwr.c
%C%_t04_t15_random_frwr_LDADD = $(FRWR_LIBS)
%C%_t15_thread_frwr_SOURCES = %D%/t15-thread-frwr.c
%C%_t15_thread_frwr_LDADD = $(FRWR_LIBS)

# Over sockets, to read and to run; on a device: ./example-frwr rdma ADDRESS.
check_PROGRAMS += %D%/example-frwr
TESTS += %D%/example-frwr
%C%_example_frwr_SOURCES = \
	%D%/example-frwr.c \
	tests/fabric/harness.c \
	tests/fabric/harness.h \
	tests/fabric/main-tcp.c \
	$(NULL)
%C%_example_frwr_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fabric
%C%_example_frwr_LDADD = libfrwr.la libfab.la libbase.la libclock.la

# Cases on real connections: over sockets here, on soft-RoCE in a guest (tests/guest/test-frwr.sh).
frwr_device_sources = \
	tests/fabric/harness.c \
	tests/fabric/harness.h \
	tests/frwr/device-basic.c \
	tests/frwr/device-end.c \
	tests/frwr/device-io.c \
	tests/frwr/device-kit.c \
	tests/frwr/device-peer.c \
	tests/frwr/device-refused.c \
	tests/frwr/device-rw-client.c \
	tests/frwr/device-rw-server.c \
	tests/frwr/device-rw.h \
	tests/frwr/device-watch.c \
	tests/frwr/device.c \
	tests/frwr/device.h \
	tests/frwr/rw-pattern.h \
	$(NULL)
check_PROGRAMS += %D%/frwr-device
TESTS += %D%/frwr-device
%C%_frwr_device_SOURCES = $(frwr_device_sources) tests/fabric/main-tcp.c
%C%_frwr_device_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fabric
%C%_frwr_device_LDADD = libfrwr.la libfab.la libbase.la libclock.la
if HAVE_RDMA
check_PROGRAMS += %D%/frwr-device-verbs
%C%_frwr_device_verbs_SOURCES = $(frwr_device_sources) tests/fabric/main-verbs.c
%C%_frwr_device_verbs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fabric
%C%_frwr_device_verbs_LDADD = libfrwr.la libfab.la libbase.la libclock.la
endif

# Each row of requirements and each item of the list of tests has a test or a reason.
TESTS += tests/check-frwr-rows.sh
EXTRA_DIST += tests/check-frwr-rows.sh tests/frwr/README
