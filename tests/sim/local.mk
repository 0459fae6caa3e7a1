# SPDX-License-Identifier: BSD-3-Clause
# libsimfab: virtual time, faults, and the fabric over both.
check_LTLIBRARIES += libsimfab.la
libsimfab_la_SOURCES = \
	%D%/sim-channel.c \
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
	%D%/sim-wire.c \
	$(NULL)

check_PROGRAMS += test-sim-fabric fab-conformance-sim
SIM_FABRIC_TESTS = test-sim-fabric %D%/conformance-sim.sh
TESTS += $(SIM_FABRIC_TESTS)
dist_check_SCRIPTS += %D%/conformance-sim.sh %D%/sim-nic.sh %D%/sim-registration.sh

test_sim_fabric_SOURCES = %D%/test-sim-fabric.c
test_sim_fabric_LDADD = libsimfab.la libfab.la libworker.la libbase.la

fab_conformance_sim_SOURCES = \
	$(conformance_sources) \
	%D%/main-conformance.c \
	$(NULL)
fab_conformance_sim_LDADD = libsimfab.la libfab.la libworker.la libbase.la

# libsim: both programs without what touches the machine, what they stand on instead, in virtual time,
# and the world of the scenarios.  One archive, because the parts call each other both ways.
# world.o has srv-ident.o's functions and is wanted first, so that one stays out.
# Not with TSan: fibers change stacks in a way that it does not know, and there is one thread.
if BUILD_SERVER
if !SANITIZE_THREAD
check_LTLIBRARIES += libsim.la
libsim_la_CPPFLAGS = \
	$(CLT_CPPFLAGS) \
	$(SRV_CPPFLAGS) \
	$(NULL)
libsim_la_SOURCES = \
	%D%/raw-clt.c \
	%D%/raw-clt.h \
	%D%/raw-srv.c \
	%D%/raw-srv.h \
	%D%/sim-fiber.c \
	%D%/sim-fiber.h \
	%D%/sim-loop.c \
	%D%/sim-loop.h \
	%D%/sim-share.c \
	%D%/sim-share.h \
	%D%/sim-storage.c \
	%D%/sim-storage.h \
	%D%/sim-uring.c \
	%D%/sim-wait.c \
	%D%/sim-wait.h \
	%D%/sim-worker.c \
	%D%/trace.c \
	%D%/trace.h \
	%D%/world-client.c \
	%D%/world-priv.h \
	%D%/world-server.c \
	%D%/world.c \
	%D%/world.h \
	$(NULL)

libsim_la_LIBADD = libpeer.la libclt.la librtrssrv.la libsimfab.la

SIM_PLAIN_TESTS = test-sim-ask test-sim-auth test-sim-clt test-sim-dev test-sim-fair test-sim-fence test-sim-identity test-sim-limit test-sim-live test-sim-loss test-sim-mem test-sim-multi test-sim-multi-peer test-sim-nbd test-sim-nbd-loss test-sim-nbd-many test-sim-path test-sim-peer test-sim-relay test-sim-share test-sim-size test-sim-small test-sim-srv test-sim-srv-limits test-sim-turns test-sim-window
SIM_TESTS = $(SIM_PLAIN_TESTS) test-sim-nbd-random test-sim-random
check_PROGRAMS += $(SIM_TESTS)
SIM_NIC_TESTS = %D%/sim-nic.sh %D%/sim-registration.sh
dist_check_SCRIPTS += %D%/sim-random.sh
TESTS += $(SIM_PLAIN_TESTS) %D%/sim-random.sh $(SIM_NIC_TESTS)

test_sim_ask_SOURCES = %D%/test-sim-ask.c
test_sim_ask_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_ask_LDADD = libsim.la
test_sim_auth_SOURCES = %D%/test-sim-auth.c
test_sim_auth_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_auth_LDADD = libsim.la
test_sim_clt_SOURCES = %D%/test-sim-clt.c
test_sim_clt_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_clt_LDADD = libsim.la
test_sim_dev_SOURCES = %D%/test-sim-dev.c
test_sim_dev_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_dev_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dev_answer
test_sim_dev_LDADD = libsim.la
test_sim_fair_SOURCES = %D%/test-sim-fair.c
test_sim_fair_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_fair_LDADD = libsim.la
test_sim_fence_SOURCES = %D%/history.c %D%/history.h %D%/test-sim-fence.c
test_sim_fence_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_fence_LDADD = libsim.la
test_sim_identity_SOURCES = %D%/test-sim-identity.c
test_sim_identity_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_identity_LDADD = libsim.la
test_sim_limit_SOURCES = %D%/test-sim-limit.c
test_sim_limit_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_limit_LDADD = libsim.la
test_sim_live_SOURCES = %D%/history.c %D%/history.h %D%/test-sim-live.c
test_sim_live_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_live_LDADD = libsim.la
test_sim_loss_SOURCES = %D%/test-sim-loss.c
test_sim_loss_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_loss_LDADD = libsim.la
test_sim_mem_SOURCES = %D%/test-sim-mem.c
test_sim_mem_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_mem_LDADD = libsim.la
test_sim_multi_SOURCES = %D%/test-sim-multi.c
test_sim_multi_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_multi_LDADD = libcltkit.la libsim.la libopt.la
test_sim_multi_peer_SOURCES = %D%/test-sim-multi-peer.c
test_sim_multi_peer_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_multi_peer_LDADD = libsim.la
# rtrs-nbd: its engine, and the client's side of a gateway, on the loops of a client.
SIM_NBD_SOURCES = \
	%D%/history.c \
	%D%/history.h \
	%D%/nbd-op.c \
	%D%/nbd-op.h \
	%D%/sim-nbd.c \
	%D%/sim-nbd.h \
	%D%/sim-stream.c \
	%D%/sim-stream.h \
	%D%/world-gate.c \
	%D%/world-gate.h \
	src/rtrs-nbd/gate-export.c \
	src/rtrs-nbd/gate-export.h \
	$(NULL)
SIM_NBD_CPPFLAGS = $(libsim_la_CPPFLAGS) $(NBD_CPPFLAGS) -I$(top_srcdir)/src/rtrs-nbd
SIM_NBD_LIBS = libnbdsrv.la libcltkit.la libcltloop.la libsim.la
test_sim_nbd_SOURCES = %D%/test-sim-nbd.c $(SIM_NBD_SOURCES)
test_sim_nbd_CPPFLAGS = $(SIM_NBD_CPPFLAGS)
test_sim_nbd_LDADD = $(SIM_NBD_LIBS)
test_sim_nbd_loss_SOURCES = %D%/test-sim-nbd-loss.c $(SIM_NBD_SOURCES)
test_sim_nbd_loss_CPPFLAGS = $(SIM_NBD_CPPFLAGS)
test_sim_nbd_loss_LDADD = $(SIM_NBD_LIBS)
test_sim_nbd_many_SOURCES = %D%/test-sim-nbd-many.c $(SIM_NBD_SOURCES)
test_sim_nbd_many_CPPFLAGS = $(SIM_NBD_CPPFLAGS)
test_sim_nbd_many_LDADD = $(SIM_NBD_LIBS)
test_sim_turns_SOURCES = %D%/test-sim-turns.c $(SIM_NBD_SOURCES)
test_sim_turns_CPPFLAGS = $(SIM_NBD_CPPFLAGS)
test_sim_turns_LDADD = $(SIM_NBD_LIBS)
test_sim_nbd_random_SOURCES = \
	%D%/nbd-work.c \
	%D%/nbd-work.h \
	%D%/random-faults.c \
	%D%/random-faults.h \
	%D%/test-sim-nbd-random.c \
	$(SIM_NBD_SOURCES)
test_sim_nbd_random_CPPFLAGS = $(SIM_NBD_CPPFLAGS)
test_sim_nbd_random_LDADD = $(SIM_NBD_LIBS)
test_sim_path_SOURCES = %D%/test-sim-path.c
test_sim_path_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_path_LDADD = libsim.la
test_sim_peer_SOURCES = %D%/test-sim-peer.c
test_sim_peer_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_peer_LDADD = libsim.la
test_sim_random_SOURCES = \
	%D%/history.c \
	%D%/history.h \
	%D%/random-faults.c \
	%D%/random-faults.h \
	%D%/random-work.c \
	%D%/random-work.h \
	%D%/test-sim-random.c \
	$(NULL)
test_sim_random_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_random_LDADD = libsim.la
test_sim_relay_SOURCES = %D%/test-sim-relay.c
test_sim_relay_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_relay_LDADD = libsim.la
test_sim_share_SOURCES = \
	%D%/history.c \
	%D%/history.h \
	%D%/random-work.c \
	%D%/random-work.h \
	%D%/share-faults.c \
	%D%/share-faults.h \
	%D%/test-sim-share.c \
	$(NULL)
test_sim_share_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_share_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dev_handshake_start
test_sim_share_LDADD = libsim.la
test_sim_size_SOURCES = %D%/test-sim-size.c
test_sim_size_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_size_LDADD = libsim.la
test_sim_small_SOURCES = %D%/test-sim-small.c
test_sim_small_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_small_LDADD = libsim.la
test_sim_srv_SOURCES = %D%/test-sim-srv.c
test_sim_srv_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_srv_LDADD = libsim.la
test_sim_srv_limits_SOURCES = %D%/test-sim-srv-limits.c
test_sim_srv_limits_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_srv_limits_LDADD = libsim.la

test_sim_window_SOURCES = %D%/test-sim-window.c
test_sim_window_CPPFLAGS = $(libsim_la_CPPFLAGS)
test_sim_window_LDADD = libsim.la

# For as long as one likes, from a seed that nobody has seen yet.  make long (build-aux/long.sh) adds such runs up.
SIM_SECONDS = 60
check-sim: test-sim-random
	SIM_SECONDS=$(SIM_SECONDS) SIM_SEED=$${SIM_SEED-$$(date +%s)} ./test-sim-random
endif
endif
# Outside of the conditions: automake wants one condition for all of .PHONY.
.PHONY: check-sim
