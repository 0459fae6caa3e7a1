# SPDX-License-Identifier: BSD-3-Clause
# libsimfab: virtual time, faults, and the fabric over both.
check_LTLIBRARIES += libsimfab.la
libsimfab_la_SOURCES = \
	%D%/sim-cm.c \
	%D%/sim-core.c \
	%D%/sim-core.h \
	%D%/sim-fab-priv.h \
	%D%/sim-fabric.h \
	%D%/sim-mem.c \
	%D%/sim-net.c \
	%D%/sim-net.h \
	%D%/sim-qp.c \
	%D%/sim-test.c \
	%D%/sim-test.h \
	$(NULL)

check_PROGRAMS += test-sim-fabric fab-conformance-sim
TESTS += test-sim-fabric %D%/conformance-sim.sh
dist_check_SCRIPTS += %D%/conformance-sim.sh

test_sim_fabric_SOURCES = %D%/test-sim-fabric.c
test_sim_fabric_LDADD = libsimfab.la libfab.la libbase.la

fab_conformance_sim_SOURCES = \
	$(conformance_sources) \
	%D%/main-conformance.c \
	$(NULL)
fab_conformance_sim_LDADD = libsimfab.la libfab.la libbase.la
