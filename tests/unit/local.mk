# SPDX-License-Identifier: BSD-3-Clause
# One Criterion program per module, linking that module's library.  They end in .crit so that they
# run through run-criterion.sh.
EXTRA_DIST += tests/run-criterion.sh
# How golden.h was made.
EXTRA_DIST += \
	tests/golden/README \
	tests/golden/capture.sh \
	tests/golden/extract.py \
	tests/golden/peers.sh \
	$(NULL)
TEST_EXTENSIONS = .crit
CRIT_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run-criterion.sh

UNIT_TESTS = \
	%D%/test-auth-attacker.crit \
	%D%/test-auth-chap.crit \
	%D%/test-auth-timing.crit \
	%D%/test-bitmap.crit \
	%D%/test-ctl.crit \
	%D%/test-golden.crit \
	%D%/test-dev-loss.crit \
	%D%/test-hist.crit \
	%D%/test-lat.crit \
	%D%/test-top-rows.crit \
	%D%/test-unix-sock.crit \
	%D%/test-bucket.crit \
	%D%/test-unproven.crit \
	%D%/test-fab-service.crit \
	%D%/test-fds.crit \
	%D%/test-deal.crit \
	%D%/test-size.crit \
	%D%/test-spin.crit \
	%D%/test-index.crit \
	%D%/test-list.crit \
	%D%/test-log.crit \
	%D%/test-machine.crit \
	%D%/test-loop.crit \
	%D%/test-look.crit \
	%D%/test-nbd-guest.crit \
	%D%/test-nbd-late.crit \
	%D%/test-nbd-linger.crit \
	%D%/test-nbd-mem.crit \
	%D%/test-nbd-msg.crit \
	%D%/test-nbd-opt.crit \
	%D%/test-nbd-pause.crit \
	%D%/test-nbd-recv.crit \
	%D%/test-nbd-server.crit \
	%D%/test-nbd-tls.crit \
	%D%/test-nbd-visit.crit \
	%D%/test-number.crit \
	%D%/test-certs.crit \
	%D%/test-fab-limits.crit \
	%D%/test-psk.crit \
	%D%/test-opt.crit \
	%D%/test-opt-file.crit \
	%D%/test-opt-recorded.crit \
	%D%/test-bench-options.crit \
	%D%/test-gate-options.crit \
	%D%/test-tls-judge.crit \
	%D%/test-gate-tls.crit \
	%D%/test-tls-stream.crit \
	%D%/test-rtrsctl-args.crit \
	%D%/test-rtrsctl-text.crit \
	%D%/test-mask.crit \
	%D%/test-end.crit \
	%D%/test-plain-file.crit \
	%D%/test-metric.crit \
	%D%/test-metric-host.crit \
	%D%/test-metric-http.crit \
	%D%/test-range.crit \
	%D%/test-rnbd-extents.crit \
	%D%/test-rnbd-list.crit \
	%D%/test-rnbd-msg.crit \
	%D%/test-rtrs-geom.crit \
	%D%/test-rtrs-hb.crit \
	%D%/test-rtrs-msg.crit \
	%D%/test-rtrs-req.crit \
	%D%/test-rtrs-wr.crit \
	%D%/test-suggest.crit \
	%D%/test-tcp-hs.crit \
	%D%/test-util.crit \
	$(NULL)

# The server's parts need no more than its library, which is built where liburing is.
if BUILD_SERVER
UNIT_TESTS += \
	%D%/test-conf.crit \
	%D%/test-conf-file.crit \
	%D%/test-conf-save.crit \
	%D%/test-plan.crit \
	%D%/test-apply.crit \
	%D%/test-change.crit \
	%D%/test-export.crit \
	%D%/test-export-ask.crit \
	%D%/test-export-extents.crit \
	%D%/test-export-fs.crit \
	%D%/test-export-limits.crit \
	%D%/test-export-io.crit \
	%D%/test-export-mem.crit \
	%D%/test-export-pulse.crit \
	%D%/test-export-size.crit \
	%D%/test-export-state.crit \
	%D%/test-reactor.crit \
	%D%/test-store-file-holder.crit \
	%D%/test-store-file-pr.crit \
	%D%/test-store-file-share.crit \
	%D%/test-store-taking.crit \
	%D%/test-srv-dev.crit \
	%D%/test-srv-dev-io.crit \
	%D%/test-srv-fence.crit \
	%D%/test-srv-fsm.crit \
	%D%/test-lead-fsm.crit \
	%D%/test-srv-log.crit \
	%D%/test-srv-pool.crit \
	$(NULL)
endif

if HAVE_RBD
UNIT_TESTS += %D%/test-rbd-target.crit %D%/test-store-rbd.crit
endif
if HAVE_RDMA
UNIT_TESTS += %D%/test-verbs-cm.crit %D%/test-verbs-conn.crit %D%/test-verbs-dev.crit %D%/test-verbs-reap.crit
endif

# Criterion programs abort at start under TSan; those jobs run tests/thread.
if HAVE_CRITERION
if !SANITIZE_THREAD
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
endif

UNIT_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)

%C%_test_bitmap_crit_SOURCES = %D%/test-bitmap.c %D%/unit.h
%C%_test_bitmap_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_bitmap_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_ctl_crit_SOURCES = %D%/test-ctl.c %D%/unit.h
%C%_test_ctl_crit_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_ctl_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4
%C%_test_ctl_crit_LDADD = libctl.la libloop.la libbase.la $(CRITERION_LIBS) $(JANSSON_LIBS)
%C%_test_golden_crit_SOURCES = %D%/test-golden.c %D%/golden.h %D%/unit.h
%C%_test_golden_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_golden_crit_LDADD = librtrs.la librnbd.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_unix_sock_crit_SOURCES = %D%/test-unix-sock.c %D%/unit.h
%C%_test_unix_sock_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_unix_sock_crit_LDADD = libbase.la $(CRITERION_LIBS)
nbd_by_hand = %D%/nbd-by-hand.c %D%/nbd-by-hand.h %D%/nbd-rig.c %D%/nbd-rig.h %D%/unit.h
%C%_test_nbd_guest_crit_SOURCES = %D%/test-nbd-guest.c $(nbd_by_hand)
%C%_test_nbd_guest_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_guest_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_guest_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_gate_tls_crit_SOURCES = %D%/test-gate-tls.c src/rtrs-nbd/gate-tls.c $(nbd_by_hand)
%C%_test_gate_tls_crit_CPPFLAGS = $(CLT_CPPFLAGS) $(NBD_CPPFLAGS) -I$(top_srcdir)/src/rtrs-nbd
%C%_test_gate_tls_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_gate_tls_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_late_crit_SOURCES = %D%/test-nbd-late.c $(nbd_by_hand)
%C%_test_nbd_late_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_late_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_late_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_linger_crit_SOURCES = %D%/test-nbd-linger.c
%C%_test_nbd_linger_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_linger_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_linger_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_tls_crit_SOURCES = %D%/test-nbd-tls.c $(nbd_by_hand)
%C%_test_nbd_tls_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_tls_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_tls_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_visit_crit_SOURCES = %D%/test-nbd-visit.c $(nbd_by_hand)
%C%_test_nbd_visit_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_visit_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_visit_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_mem_crit_SOURCES = %D%/test-nbd-mem.c %D%/unit.h
%C%_test_nbd_mem_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_mem_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_mem_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_msg_crit_SOURCES = %D%/test-nbd-msg.c %D%/unit.h
%C%_test_nbd_msg_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_msg_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_msg_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_opt_crit_SOURCES = %D%/test-nbd-opt.c %D%/unit.h
%C%_test_nbd_opt_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_opt_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_opt_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_pause_crit_SOURCES = %D%/test-nbd-pause.c $(nbd_by_hand)
%C%_test_nbd_pause_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_pause_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_pause_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_recv_crit_SOURCES = %D%/test-nbd-recv.c $(nbd_by_hand)
%C%_test_nbd_recv_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_recv_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_recv_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recvmsg
%C%_test_nbd_recv_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_nbd_server_crit_SOURCES = %D%/test-nbd-server.c $(nbd_by_hand)
%C%_test_nbd_server_crit_CPPFLAGS = $(AM_CPPFLAGS) $(NBD_CPPFLAGS)
%C%_test_nbd_server_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_nbd_server_crit_LDADD = libnbdsrv.la libbase.la $(CRITERION_LIBS)
%C%_test_lat_crit_SOURCES = %D%/test-lat.c %D%/unit.h src/rtrs-bench/lat.c src/rtrs-bench/lat.h
%C%_test_lat_crit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/rtrs-bench
%C%_test_lat_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_lat_crit_LDADD = $(CRITERION_LIBS)

%C%_test_look_crit_SOURCES = %D%/test-look.c %D%/unit.h \
	src/rtrs-bench/lat.c src/rtrs-bench/lat.h \
	src/rtrs-bench/look.c src/rtrs-bench/look.h \
	$(NULL)
%C%_test_look_crit_CPPFLAGS = $(CLT_CPPFLAGS) -I$(top_srcdir)/src/rtrs-bench
%C%_test_look_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_look_crit_LDADD = $(CRITERION_LIBS)
%C%_test_dev_loss_crit_SOURCES = %D%/test-dev-loss.c %D%/unit.h
%C%_test_dev_loss_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_dev_loss_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_dev_loss_crit_LDADD = libclt.la $(CRITERION_LIBS)
%C%_test_hist_crit_SOURCES = %D%/test-hist.c %D%/unit.h
%C%_test_hist_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_hist_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_spin_crit_SOURCES = %D%/test-spin.c %D%/unit.h
%C%_test_spin_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_spin_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_index_crit_SOURCES = %D%/test-index.c %D%/unit.h
%C%_test_index_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_index_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_list_crit_SOURCES = %D%/test-list.c %D%/unit.h
%C%_test_list_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_list_crit_LDADD = $(CRITERION_LIBS)
%C%_test_log_crit_SOURCES = %D%/test-log.c %D%/unit.h
%C%_test_log_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_log_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_machine_crit_SOURCES = %D%/test-machine.c %D%/unit.h
%C%_test_machine_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_machine_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_loop_crit_SOURCES = %D%/test-loop.c %D%/unit.h
%C%_test_loop_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_loop_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_range_crit_SOURCES = %D%/test-range.c %D%/unit.h
%C%_test_range_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_range_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_rnbd_extents_crit_SOURCES = %D%/test-rnbd-extents.c %D%/unit.h
%C%_test_rnbd_extents_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rnbd_extents_crit_LDADD = librnbd.la $(CRITERION_LIBS)

%C%_test_rnbd_list_crit_SOURCES = %D%/test-rnbd-list.c %D%/unit.h
%C%_test_rnbd_list_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rnbd_list_crit_LDADD = librnbd.la $(CRITERION_LIBS)

%C%_test_rnbd_msg_crit_SOURCES = %D%/test-rnbd-msg.c %D%/unit.h
%C%_test_rnbd_msg_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rnbd_msg_crit_LDADD = librnbd.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_rtrs_geom_crit_SOURCES = %D%/test-rtrs-geom.c %D%/unit.h
%C%_test_rtrs_geom_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rtrs_geom_crit_LDADD = librtrs.la $(CRITERION_LIBS)
%C%_test_rtrs_hb_crit_SOURCES = %D%/test-rtrs-hb.c %D%/unit.h
%C%_test_rtrs_hb_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rtrs_hb_crit_LDADD = librtrs.la $(CRITERION_LIBS)
%C%_test_rtrs_msg_crit_SOURCES = %D%/test-rtrs-msg.c %D%/unit.h
%C%_test_rtrs_msg_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rtrs_msg_crit_LDADD = librtrs.la $(CRITERION_LIBS)
%C%_test_rtrs_req_crit_SOURCES = %D%/test-rtrs-req.c %D%/unit.h
%C%_test_rtrs_req_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rtrs_req_crit_LDADD = librtrs.la $(CRITERION_LIBS)
%C%_test_rtrs_wr_crit_SOURCES = %D%/test-rtrs-wr.c %D%/unit.h
%C%_test_rtrs_wr_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rtrs_wr_crit_LDADD = librtrs.la $(CRITERION_LIBS)
%C%_test_metric_crit_SOURCES = %D%/test-metric.c %D%/unit.h
%C%_test_metric_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_metric_crit_LDADD = libmetrics.la libbase.la $(CRITERION_LIBS)
%C%_test_metric_host_crit_SOURCES = %D%/test-metric-host.c %D%/unit.h
%C%_test_metric_host_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_metric_host_crit_LDADD = libmetrics.la libbase.la $(CRITERION_LIBS)
%C%_test_metric_http_crit_SOURCES = %D%/test-metric-http.c %D%/unit.h
%C%_test_metric_http_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_metric_http_crit_LDADD = libmetrics.la libloop.la libclock.la libbase.la $(CRITERION_LIBS)
%C%_test_end_crit_SOURCES = %D%/test-end.c %D%/unit.h
%C%_test_end_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_end_crit_LDADD = libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_plain_file_crit_SOURCES = %D%/test-plain-file.c %D%/unit.h
%C%_test_plain_file_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_plain_file_crit_LDADD = libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_mask_crit_SOURCES = %D%/test-mask.c %D%/unit.h
%C%_test_mask_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_mask_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_auth_attacker_crit_SOURCES = %D%/test-auth-attacker.c %D%/unit.h
%C%_test_auth_attacker_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_auth_attacker_crit_LDADD = libauth.la libsecrets.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_auth_timing_crit_SOURCES = %D%/test-auth-timing.c %D%/unit.h
%C%_test_auth_timing_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_auth_timing_crit_LDADD = libauth.la libsecrets.la libbase.la -lm $(CRITERION_LIBS)
%C%_test_auth_chap_crit_SOURCES = %D%/test-auth-chap.c %D%/auth-vectors.h %D%/unit.h
%C%_test_auth_chap_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_auth_chap_crit_LDADD = libauth.la libsecrets.la libbase.la libclock.la $(CRITERION_LIBS)
EXTRA_DIST += %D%/auth-vectors.py
%C%_test_certs_crit_SOURCES = %D%/test-certs.c %D%/unit.h
%C%_test_certs_crit_CFLAGS = $(UNIT_CFLAGS) $(GNUTLS_CFLAGS)
%C%_test_certs_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=gnutls_certificate_get_peers
%C%_test_certs_crit_LDADD = libfab.la libbase.la libclock.la $(GNUTLS_LIBS) $(CRITERION_LIBS)
%C%_test_fab_limits_crit_SOURCES = %D%/test-fab-limits.c %D%/unit.h
%C%_test_fab_limits_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_fab_limits_crit_LDADD = libfab.la libbase.la libclock.la $(GNUTLS_LIBS) $(CRITERION_LIBS)
%C%_test_psk_crit_SOURCES = %D%/test-psk.c %D%/unit.h
%C%_test_psk_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_psk_crit_LDADD = libpsk.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_number_crit_SOURCES = %D%/test-number.c %D%/unit.h
%C%_test_number_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_number_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_bench_options_crit_SOURCES = \
	%D%/opt-rules.c \
	%D%/opt-rules.h \
	%D%/test-bench-options.c \
	%D%/unit.h \
	src/rtrs-bench/options.c \
	$(NULL)
%C%_test_bench_options_crit_CPPFLAGS = $(CLT_CPPFLAGS) -I$(top_srcdir)/src/rtrs-bench
%C%_test_bench_options_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_bench_options_crit_LDADD = \
	libclt.la libfab.la librtrs.la libopt.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_gate_options_crit_SOURCES = \
	%D%/opt-rules.c \
	%D%/opt-rules.h \
	%D%/test-gate-options.c \
	%D%/unit.h \
	src/rtrs-nbd/gate-options.c \
	$(NULL)
%C%_test_gate_options_crit_CPPFLAGS = $(CLT_CPPFLAGS) -I$(top_srcdir)/src/rtrs-nbd $(NBD_CPPFLAGS)
%C%_test_gate_options_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_gate_options_crit_LDADD = \
	libcltkit.la libclt.la libloop.la libfab.la librtrs.la librnbd.la libopt.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_tls_judge_crit_SOURCES = %D%/test-tls-judge.c %D%/unit.h
%C%_test_tls_judge_crit_CFLAGS = $(UNIT_CFLAGS) $(GNUTLS_CFLAGS)
%C%_test_tls_judge_crit_LDADD = \
	libfab.la libbase.la libclock.la $(GNUTLS_LIBS) $(CRITERION_LIBS)
%C%_test_tls_stream_crit_SOURCES = %D%/test-tls-stream.c %D%/unit.h
%C%_test_tls_stream_crit_CFLAGS = $(UNIT_CFLAGS) $(GNUTLS_CFLAGS)
%C%_test_tls_stream_crit_LDADD = \
	libfab.la libbase.la libclock.la $(GNUTLS_LIBS) $(CRITERION_LIBS)
%C%_test_tls_stream_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv,--wrap=send,--wrap=free
%C%_test_rtrsctl_args_crit_SOURCES = \
	%D%/opt-rules.c \
	%D%/opt-rules.h \
	%D%/test-rtrsctl-args.c \
	%D%/unit.h \
	src/rtrsctl/args.c \
	$(NULL)
%C%_test_rtrsctl_args_crit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/rtrsctl
%C%_test_rtrsctl_args_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rtrsctl_args_crit_LDADD = libopt.la libbase.la $(CRITERION_LIBS)
%C%_test_top_rows_crit_SOURCES = \
	%D%/test-top-rows.c \
	%D%/unit.h \
	src/rtrsctl/answer.c \
	src/rtrsctl/rate.c \
	src/rtrsctl/state.c \
	src/rtrsctl/text.c \
	src/rtrsctl/top-rows.c \
	src/rtrsctl/width.c \
	$(NULL)
%C%_test_top_rows_crit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/rtrsctl
%C%_test_top_rows_crit_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_top_rows_crit_LDADD = libctl.la libbase.la $(JANSSON_LIBS) $(CRITERION_LIBS)
%C%_test_rtrsctl_text_crit_SOURCES = \
	%D%/test-rtrsctl-text.c \
	%D%/unit.h \
	src/rtrsctl/answer.c \
	src/rtrsctl/text.c \
	src/rtrsctl/width.c \
	$(NULL)
%C%_test_rtrsctl_text_crit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/rtrsctl
%C%_test_rtrsctl_text_crit_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
%C%_test_rtrsctl_text_crit_LDADD = libctl.la libbase.la $(JANSSON_LIBS) $(CRITERION_LIBS)
%C%_test_opt_file_crit_SOURCES = %D%/test-opt-file.c %D%/unit.h
%C%_test_opt_file_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_opt_file_crit_LDADD = libopt.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_opt_recorded_crit_SOURCES = %D%/test-opt-recorded.c %D%/unit.h
%C%_test_opt_recorded_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_opt_recorded_crit_LDADD = libopt.la libbase.la libclock.la $(CRITERION_LIBS)
EXTRA_DIST += %D%/opt-recorded.txt
%C%_test_opt_crit_SOURCES = %D%/test-opt.c %D%/unit.h
%C%_test_opt_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_opt_crit_LDADD = libopt.la libbase.la $(CRITERION_LIBS)
%C%_test_fds_crit_SOURCES = %D%/test-fds.c %D%/unit.h
%C%_test_fds_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_fds_crit_LDADD = libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_bucket_crit_SOURCES = %D%/test-bucket.c %D%/unit.h
%C%_test_bucket_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_bucket_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_deal_crit_SOURCES = %D%/test-deal.c %D%/unit.h
%C%_test_deal_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_deal_crit_LDADD = libbase.la $(CRITERION_LIBS)
# Its own clock, and its own loop.
%C%_test_fab_service_crit_SOURCES = %D%/test-fab-service.c %D%/fsm-rules.h %D%/unit.h
%C%_test_fab_service_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_fab_service_crit_LDADD = libfab.la libworker.la libbase.la $(CRITERION_LIBS)
%C%_test_unproven_crit_SOURCES = %D%/test-unproven.c %D%/unit.h
%C%_test_unproven_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_unproven_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_size_crit_SOURCES = %D%/test-size.c %D%/unit.h
%C%_test_size_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_size_crit_LDADD = libbase.la $(CRITERION_LIBS)

%C%_test_suggest_crit_SOURCES = %D%/test-suggest.c %D%/unit.h
%C%_test_suggest_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_suggest_crit_LDADD = libbase.la $(CRITERION_LIBS)
%C%_test_tcp_hs_crit_SOURCES = %D%/test-tcp-hs.c %D%/fsm-rules.h %D%/unit.h
%C%_test_tcp_hs_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_tcp_hs_crit_LDADD = libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_util_crit_SOURCES = %D%/test-util.c %D%/unit.h
%C%_test_util_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_util_crit_LDADD = $(CRITERION_LIBS)
# Over a librdmacm of its own.
%C%_test_verbs_cm_crit_SOURCES = %D%/test-verbs-cm.c %D%/unit.h
%C%_test_verbs_cm_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_verbs_cm_crit_LDADD = libfab.la libbase.la libclock.la $(CRITERION_LIBS)
# Over a device of its own.
%C%_test_verbs_conn_crit_SOURCES = \
	%D%/test-verbs-conn.c \
	%D%/unit.h \
	src/common/fabric/fab-addr.c \
	src/common/fabric/fab-mem.c \
	src/common/fabric/fabric.c \
	src/common/fabric/verbs/verbs-conn.c \
	src/common/fabric/verbs/verbs-mw.c \
	src/common/fabric/verbs/verbs-poll.c \
	src/common/fabric/verbs/verbs-post.c \
	$(NULL)
%C%_test_verbs_conn_crit_CPPFLAGS = $(AM_CPPFLAGS) -Drealloc=fake_realloc
%C%_test_verbs_conn_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_verbs_conn_crit_LDADD = libbase.la $(CRITERION_LIBS)
# Over devices and a librdmacm of its own.
%C%_test_verbs_reap_crit_SOURCES = %D%/test-verbs-reap.c %D%/unit.h
%C%_test_verbs_reap_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_verbs_reap_crit_LDADD = libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_verbs_dev_crit_SOURCES = %D%/test-verbs-dev.c
%C%_test_verbs_dev_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_verbs_dev_crit_LDADD = libfab.la libbase.la $(CRITERION_LIBS)

# The include law, and that its check finds violations.
TESTS += tests/check-layers.sh tests/test-check-layers.sh tests/test-house.sh
EXTRA_DIST += tests/check-layers.sh tests/test-check-layers.sh tests/test-house.sh tests/house.py tests/csource.py
%C%_test_srv_dev_crit_SOURCES = %D%/test-srv-dev.c %D%/unit.h
%C%_test_srv_dev_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_srv_dev_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_srv_dev_crit_LDADD = librtrssrv.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_srv_dev_io_crit_SOURCES = %D%/test-srv-dev-io.c %D%/unit.h
%C%_test_srv_dev_io_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_srv_dev_io_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_srv_dev_io_crit_LDADD = librtrssrv.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_srv_fence_crit_SOURCES = %D%/test-srv-fence.c %D%/unit.h
%C%_test_srv_fence_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_srv_fence_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_srv_fence_crit_LDADD = librtrssrv.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_lead_fsm_crit_SOURCES = %D%/test-lead-fsm.c %D%/fsm-rules.h %D%/unit.h
%C%_test_lead_fsm_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_lead_fsm_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_lead_fsm_crit_LDADD = librtrssrv.la librtrsring.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_srv_fsm_crit_SOURCES = %D%/test-srv-fsm.c %D%/fsm-rules.h %D%/unit.h
%C%_test_srv_fsm_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_srv_fsm_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_srv_fsm_crit_LDADD = librtrssrv.la librtrsring.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_srv_log_crit_SOURCES = %D%/test-srv-log.c %D%/unit.h
%C%_test_srv_log_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_srv_log_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_srv_log_crit_LDADD = librtrssrv.la libworker.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_plan_crit_SOURCES = %D%/test-plan.c %D%/unit.h
%C%_test_plan_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_plan_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_plan_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_apply_crit_SOURCES = %D%/test-apply.c %D%/unit.h
%C%_test_apply_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_apply_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_apply_crit_LDADD = librtrssrv.la librtrsring.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_change_crit_SOURCES = %D%/test-change.c %D%/unit.h
%C%_test_change_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_change_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_change_crit_LDADD = librtrssrv.la librtrsring.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_conf_file_crit_SOURCES = %D%/test-conf-file.c %D%/opt-rules.c %D%/opt-rules.h %D%/unit.h
%C%_test_conf_file_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_conf_file_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_conf_file_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_conf_save_crit_SOURCES = %D%/test-conf-save.c %D%/unit.h
%C%_test_conf_save_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_conf_save_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_conf_save_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_conf_crit_SOURCES = %D%/test-conf.c %D%/opt-rules.c %D%/opt-rules.h %D%/unit.h
%C%_test_conf_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_conf_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_conf_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_crit_SOURCES = %D%/test-export.c %D%/export-add.h %D%/unit.h
%C%_test_export_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_ask_crit_SOURCES = %D%/test-export-ask.c %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_ask_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_ask_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_ask_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=reactor_sqe
%C%_test_export_ask_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_mem_crit_SOURCES = %D%/test-export-mem.c %D%/export-add.h %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_mem_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_mem_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_mem_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_pulse_crit_SOURCES = %D%/test-export-pulse.c %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_pulse_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_pulse_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_pulse_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_rbd_target_crit_SOURCES = %D%/test-rbd-target.c %D%/unit.h
%C%_test_rbd_target_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_rbd_target_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_rbd_target_crit_LDADD = librtrssrv.la libstore.la $(CRITERION_LIBS)
%C%_test_store_rbd_crit_SOURCES = %D%/test-store-rbd.c %D%/unit.h
%C%_test_store_rbd_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_store_rbd_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_store_rbd_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_size_crit_SOURCES = %D%/test-export-size.c %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_size_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_size_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_size_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_extents_crit_SOURCES = %D%/test-export-extents.c %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_extents_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_extents_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_extents_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=lseek
%C%_test_export_extents_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_limits_crit_SOURCES = \
	%D%/test-export-limits.c \
	%D%/export-io-rig.c \
	%D%/export-io-rig.h \
	%D%/unit.h \
	$(NULL)
%C%_test_export_limits_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_limits_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_limits_crit_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=statx,--wrap=pread,--wrap=pread64,--wrap=ioctl,--wrap=getrlimit \
	-Wl,--wrap=store_uring_attach,--wrap=store_uring_allow_workers
%C%_test_export_limits_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_fs_crit_SOURCES = %D%/test-export-fs.c %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_fs_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_fs_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_fs_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatfs
%C%_test_export_fs_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)

%C%_test_store_file_holder_crit_SOURCES = %D%/test-store-file-holder.c %D%/unit.h
%C%_test_store_file_holder_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_store_file_holder_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_store_file_holder_crit_LDADD = librtrssrv.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_store_file_pr_crit_SOURCES = %D%/test-store-file-pr.c %D%/pr-device.c %D%/pr-device.h %D%/unit.h
%C%_test_store_file_pr_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_store_file_pr_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_store_file_pr_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ioctl,--wrap=getrandom
%C%_test_store_file_pr_crit_LDADD = librtrssrv.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)

%C%_test_store_file_share_crit_SOURCES = %D%/test-store-file-share.c %D%/pr-device.c %D%/pr-device.h %D%/unit.h
%C%_test_store_file_share_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_store_file_share_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_store_file_share_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ioctl,--wrap=getrandom
%C%_test_store_file_share_crit_LDADD = librtrsring.la librtrssrv.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)

%C%_test_store_taking_crit_SOURCES = %D%/test-store-taking.c %D%/unit.h
%C%_test_store_taking_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_store_taking_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_store_taking_crit_LDADD = librtrsring.la librtrssrv.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)

%C%_test_export_io_crit_SOURCES = %D%/test-export-io.c %D%/export-io-rig.c %D%/export-io-rig.h %D%/unit.h
%C%_test_export_io_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_io_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_io_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_export_state_crit_SOURCES = %D%/test-export-state.c %D%/export-add.h %D%/unit.h
%C%_test_export_state_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_export_state_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_export_state_crit_LDADD = librtrssrv.la librtrsring.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_reactor_crit_SOURCES = %D%/test-reactor.c %D%/unit.h
%C%_test_reactor_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_reactor_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_reactor_crit_LDADD = librtrsring.la librtrssrv.la libclock.la $(CRITERION_LIBS) $(ZLIB_LIBS)
%C%_test_srv_pool_crit_SOURCES = %D%/test-srv-pool.c %D%/unit.h
%C%_test_srv_pool_crit_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_test_srv_pool_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_srv_pool_crit_LDADD = librtrssrv.la $(CRITERION_LIBS) $(ZLIB_LIBS)

# The client's parts; what they need of clt-wait.h and the fabric stands in the test.
UNIT_TESTS += \
	%D%/test-clt-account.crit \
	%D%/test-clt-addr.crit \
	%D%/test-clt-hint.crit \
	%D%/test-clt-conf.crit \
	%D%/test-clt-probe.crit \
	%D%/test-clt-fsm.crit \
	%D%/test-clt-op.crit \
	%D%/test-clt-pick.crit \
	%D%/test-clt-reg.crit \
	%D%/test-clt-reload.crit \
	%D%/test-clt-tx.crit \
	%D%/test-dev-fsm.crit \
	$(NULL)
%C%_test_clt_account_crit_SOURCES = %D%/test-clt-account.c %D%/unit.h
%C%_test_clt_account_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_account_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_account_crit_LDADD = libclt.la librtrs.la libfrwr.la libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_addr_crit_SOURCES = %D%/test-clt-addr.c %D%/unit.h
%C%_test_clt_addr_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_addr_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_addr_crit_LDADD = libclt.la libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_hint_crit_SOURCES = %D%/test-clt-hint.c %D%/unit.h
%C%_test_clt_hint_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_hint_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_hint_crit_LDADD = libclt.la libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_conf_crit_SOURCES = %D%/test-clt-conf.c %D%/opt-rules.c %D%/opt-rules.h %D%/unit.h
%C%_test_clt_conf_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_conf_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_conf_crit_LDADD = libcltkit.la libclt.la libloop.la libfab.la librtrs.la librnbd.la libopt.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_probe_crit_SOURCES = %D%/test-clt-probe.c %D%/unit.h
%C%_test_clt_probe_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_probe_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_probe_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clt_start_run,--wrap=fab_provider_find
%C%_test_clt_probe_crit_LDADD = libcltkit.la libcltloop.la libctl.la libclt.la libloop.la libfab.la \
	librtrs.la librnbd.la libopt.la libbase.la libclock.la $(JANSSON_LIBS) $(CRITERION_LIBS)
%C%_test_clt_reload_crit_SOURCES = %D%/test-clt-reload.c %D%/unit.h
%C%_test_clt_reload_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_reload_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_reload_crit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=secrets_set_read
%C%_test_clt_reload_crit_LDADD = \
	libcltkit.la libclt.la libloop.la libfab.la librtrs.la librnbd.la libopt.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_fsm_crit_SOURCES = %D%/test-clt-fsm.c %D%/fsm-rules.h %D%/unit.h
%C%_test_clt_fsm_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_fsm_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_fsm_crit_LDADD = \
	libclt.la libcltthread.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_dev_fsm_crit_SOURCES = %D%/test-dev-fsm.c %D%/fsm-rules.h %D%/unit.h
%C%_test_dev_fsm_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_dev_fsm_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_dev_fsm_crit_LDADD = $(%C%_test_clt_fsm_crit_LDADD)
%C%_test_clt_op_crit_SOURCES = %D%/test-clt-op.c %D%/unit.h
%C%_test_clt_op_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_op_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_op_crit_LDADD = libclt.la libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_tx_crit_SOURCES = %D%/test-clt-tx.c %D%/unit.h
%C%_test_clt_tx_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_tx_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_tx_crit_LDADD = libclt.la librtrs.la libfrwr.la libfab.la libbase.la libclock.la $(CRITERION_LIBS)
%C%_test_clt_pick_crit_SOURCES = %D%/test-clt-pick.c %D%/unit.h
%C%_test_clt_pick_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_pick_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_pick_crit_LDADD = libclt.la $(CRITERION_LIBS)
%C%_test_clt_reg_crit_SOURCES = %D%/test-clt-reg.c %D%/unit.h
%C%_test_clt_reg_crit_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_test_clt_reg_crit_CFLAGS = $(UNIT_CFLAGS)
%C%_test_clt_reg_crit_LDADD = libclt.la libbase.la libclock.la $(CRITERION_LIBS)
