# SPDX-License-Identifier: BSD-3-Clause
# Plain programs with several threads; the TSan job lives from them.
THREAD_TESTS = \
	%D%/thread-bitmap \
	%D%/thread-log-limit \
	%D%/thread-log-queue \
	%D%/thread-loop \
	%D%/thread-loop-poll \
	%D%/thread-tls-keys \
	$(NULL)
check_PROGRAMS += $(THREAD_TESTS)
TESTS += $(THREAD_TESTS)

%C%_thread_bitmap_SOURCES = %D%/thread-bitmap.c %D%/thread.h
%C%_thread_bitmap_LDADD = libbase.la libclock.la

%C%_thread_log_limit_SOURCES = %D%/thread-log-limit.c %D%/thread.h
%C%_thread_log_limit_LDADD = libbase.la

%C%_thread_log_queue_SOURCES = %D%/thread-log-queue.c %D%/thread.h
%C%_thread_log_queue_LDADD = libbase.la libclock.la
%C%_thread_log_queue_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_cond_wait

%C%_thread_loop_SOURCES = %D%/thread-loop.c %D%/thread.h
%C%_thread_loop_LDADD = libbase.la

%C%_thread_loop_poll_SOURCES = %D%/thread-loop-poll.c %D%/thread.h
%C%_thread_loop_poll_LDADD = libloop.la libbase.la libclock.la

%C%_thread_tls_keys_SOURCES = %D%/thread-tls-keys.c %D%/thread.h
%C%_thread_tls_keys_CFLAGS = $(AM_CFLAGS) $(GNUTLS_CFLAGS)
%C%_thread_tls_keys_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=psk_find,--wrap=certs_get
%C%_thread_tls_keys_LDADD = libfab.la libbase.la libclock.la $(GNUTLS_LIBS)

if BUILD_SERVER
THREAD_TESTS += \
	%D%/thread-export-io \
	%D%/thread-export-life \
	%D%/thread-srv-dev \
	%D%/thread-srv-fence \
	%D%/thread-srv-turn \
	$(NULL)
endif

%C%_thread_export_io_SOURCES = %D%/thread-export-io.c %D%/thread.h
%C%_thread_export_io_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_thread_export_io_LDADD = librtrsring.la librtrssrv.la libclock.la $(ZLIB_LIBS)
%C%_thread_export_life_SOURCES = %D%/thread-export-life.c %D%/thread.h
%C%_thread_export_life_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_thread_export_life_LDADD = librtrsring.la librtrssrv.la librnbd.la libbase.la libclock.la $(ZLIB_LIBS)
%C%_thread_srv_dev_SOURCES = %D%/thread-srv-dev.c %D%/thread.h
%C%_thread_srv_dev_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_thread_srv_dev_LDADD = librtrssrv.la

%C%_thread_srv_fence_SOURCES = %D%/thread-srv-fence.c %D%/thread.h
%C%_thread_srv_fence_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_thread_srv_fence_LDADD = librtrssrv.la

%C%_thread_srv_turn_SOURCES = %D%/thread-srv-turn.c %D%/thread.h
%C%_thread_srv_turn_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_thread_srv_turn_LDADD = libclock.la

# The client, with its threads, against a server without sockets.
THREAD_TESTS += %D%/thread-clt
%C%_thread_clt_SOURCES = %D%/thread-clt.c %D%/thread.h
%C%_thread_clt_CPPFLAGS = $(CLT_CPPFLAGS)
%C%_thread_clt_LDADD = libmockserver.la libmockhca.la libclt.la libcltthread.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la

THREAD_TESTS += %D%/thread-clt-drain
%C%_thread_clt_drain_SOURCES = %D%/thread-clt-drain.c %D%/thread.h
%C%_thread_clt_drain_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_drain_LDADD = $(%C%_thread_clt_loops_LDADD)

THREAD_TESTS += %D%/thread-clt-front
%C%_thread_clt_front_SOURCES = %D%/thread-clt-front.c %D%/thread.h
%C%_thread_clt_front_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_front_LDADD = libcltkit.la libcltloop.la libctl.la libopt.la $(%C%_thread_clt_LDADD) $(JANSSON_LIBS)

THREAD_TESTS += %D%/thread-clt-loops
%C%_thread_clt_loops_SOURCES = %D%/thread-clt-loops.c %D%/thread.h
%C%_thread_clt_loops_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_loops_LDADD = libcltkit.la libcltloop.la libctl.la libopt.la $(%C%_thread_clt_LDADD) $(JANSSON_LIBS)

THREAD_TESTS += %D%/thread-clt-settle
%C%_thread_clt_settle_SOURCES = %D%/thread-clt-settle.c %D%/thread.h
%C%_thread_clt_settle_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_settle_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=loop_post,--wrap=sched_yield
%C%_thread_clt_settle_LDADD = $(%C%_thread_clt_loops_LDADD)

THREAD_TESTS += %D%/thread-clt-wake
%C%_thread_clt_wake_SOURCES = %D%/thread-clt-wake.c %D%/thread.h
%C%_thread_clt_wake_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_wake_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=loop_post,--wrap=poll,--wrap=sched_yield
%C%_thread_clt_wake_LDADD = $(%C%_thread_clt_LDADD)

THREAD_TESTS += %D%/thread-clt-close
%C%_thread_clt_close_SOURCES = %D%/thread-clt-close.c %D%/thread.h
%C%_thread_clt_close_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_close_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=loop_post,--wrap=range_lock_fini
%C%_thread_clt_close_LDADD = $(%C%_thread_clt_LDADD)

THREAD_TESTS += %D%/thread-clt-key
%C%_thread_clt_key_SOURCES = %D%/thread-clt-key.c %D%/thread.h
%C%_thread_clt_key_CPPFLAGS = $(%C%_thread_clt_CPPFLAGS)
%C%_thread_clt_key_LDADD = $(%C%_thread_clt_LDADD)
