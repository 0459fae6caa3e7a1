/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and stop of the server; control thread.
 *
 * The happy path: srv_start() fixes the geometry, makes pools of private buffers and RNBD's part,
 * and listens.  srv_shutdown() stops accepting, lets every path answer the requests in flight, then
 * fails the paths.  When the last path is gone the connection managers are closed, and done() is
 * called from the inbox.
 *
 * Possible failures: srv_start() alone can fail, and leaves nothing behind.  Answers that have not
 * left after SRV_SHUTDOWN_TIMEOUT are given up. */
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth-creds.h"
#include "clock.h"
#include "number.h"
#include "srv-limit.h"
#include "srv-listen.h"
#include "srv-open.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "srv.h"

#define MEM_CONS 64u			/* some 6 MB with the default depth: not worth trimming for
					 * less */
#define MEM_DELAY_MS 1000

/* ---- memory of clients that have gone ---- */

/* The C library keeps freed memory below memory in use, and most of the freed memory at the top:
 * after 8192 connections had gone 1.1 GB stayed.  The time of malloc_trim() grows with the memory
 * to find.  So malloc_trim() runs when many connections have gone, and once for all that go
 * together. */
static void mem_timer(struct loop_timer *timer)
{
	struct srv *srv = container_of(timer, struct srv, mem_timer);

	srv->freed_cons = 0;
	malloc_trim(0);
}

static void mem_freed(struct srv *srv, unsigned ncons)
{
	bool waits = srv->freed_cons >= MEM_CONS;

	srv->freed_cons += ncons;
	if (!waits && srv->freed_cons >= MEM_CONS && srv->life == SRV_RUNNING)
		loop_timer_set(srv_loop(srv), &srv->mem_timer, clock_now_ms() + MEM_DELAY_MS);
}

/* ---- stop ---- */

static void stop_tell_done(struct loop_msg *msg)
{
	struct srv *srv = container_of(msg, struct srv, stopped_msg);

	srv->stopped(srv->stopped_arg);
}

/* Go to the next step of stopping, if no path, or no connection manager, is left. */
static void stop_goes_on(struct srv *srv)
{
	if (srv->life == SRV_RUNNING || srv->npaths || srv->guests.n)
		return;
	if (!list_empty(&srv->cms)) {
		if (srv->life == SRV_STOPPING) {
			srv->life = SRV_CLOSING;
			loop_timer_cancel(&srv->stop_timer);
			srv_listen_close(srv);
		}
	} else if (srv->life != SRV_STOPPED) {
		srv->life = SRV_STOPPED;
		srv_post_control(srv, &srv->stopped_msg);
	}
}

/* Call @what for every path; @what may free the path, and with the path the session. */
static void for_each_path(struct srv *srv, void (*what)(struct srv_path *path))
{
	struct srv_sess *sess, *next_sess;
	struct srv_path *path, *next_path;

	list_for_each_safe(sess, next_sess, &srv->sessions, link) {
		srv_sess_get(sess);
		list_for_each_safe(path, next_path, &sess->paths, link)
			what(path);
		srv_sess_put(sess);
	}
}

static void stop_cut(struct srv_path *path)
{
	srv_path_fail(path, "server is shutting down, answers have not left in time");
}

static void stop_timeout(struct loop_timer *timer)
{
	for_each_path(container_of(timer, struct srv, stop_timer), stop_cut);
}

void srv_shutdown(struct srv *srv, void (*done)(void *arg), void *arg)
{
	assert(srv->life == SRV_RUNNING);
	srv->life = SRV_STOPPING;
	srv->stopped = done;
	srv->stopped_arg = arg;
	srv_listen_stop(srv);
	loop_timer_cancel(&srv->mem_timer);
	srv_accept_refuse_parked(srv);
	srv_auth_stop(srv);
	loop_timer_set(srv_loop(srv), &srv->stop_timer, clock_now_ms() + SRV_SHUTDOWN_TIMEOUT);
	srv_limit_stop(srv);
	for_each_path(srv, srv_path_finish);
	stop_goes_on(srv);
}

/* ---- start ---- */

static void part_gone(struct srv *srv, unsigned ncons)
{
	mem_freed(srv, ncons);
	stop_goes_on(srv);
}

static void path_unlinked(struct srv_path *path)
{
	struct srv *srv = path->srv;

	srv_pass_attempt_over(srv, path->conn_key);
	srv_accept_retry(srv);
	srv_info_retry(srv);
	srv_open_retry(srv);
}

static void srv_free(struct srv *srv)
{
	for (unsigned i = 0; i < srv->nthreads; i++)
		srv_pool_fini(&srv->threads[i].pool);
	srv_rnbd_destroy(srv);
	fab_tls_destroy(srv->tls);
	srv_pass_fini(&srv->passes);
	auth_creds_destroy(srv->auth);
	free(srv->threads);
	frwr_lessons_fini(&srv->lessons);
	free(srv);
}

static struct srv *srv_alloc(const struct srv_conf *conf, struct reactor **reactors, unsigned n)
{
	struct srv *srv = calloc(1, sizeof(*srv));

	if (!srv)
		return NULL;
	srv->threads = calloc(n, sizeof(*srv->threads));
	if (!srv->threads) {
		free(srv);
		return NULL;
	}
	frwr_lessons_init(&srv->lessons);
	srv->path_unlinked = path_unlinked;
	srv->part_gone = part_gone;
	srv->conf = conf;
	srv->ops = &srv_rnbd_ops;
	srv->nthreads = n;
	for (unsigned i = 0; i < n; i++) {
		struct srv_thread *t = &srv->threads[i];

		t->srv = srv;
		t->index = i;
		t->reactor = reactors[i];
		t->loop = reactor_loop(reactors[i]);
		srv_drr_init(&t->drr, t->loop);
	}
	list_init(&srv->cms);
	list_init(&srv->listeners);
	list_init(&srv->sessions);
	loop_timer_init(&srv->stop_timer, stop_timeout);
	loop_msg_init(&srv->stopped_msg, stop_tell_done);
	srv_accept_init(srv);
	srv_auth_init(srv);
	loop_timer_init(&srv->mem_timer, mem_timer);
	return srv;
}

static int pools_init(struct srv *srv)
{
	int rc = 0;

	for (unsigned i = 0; i < srv->nthreads && !rc; i++)
		rc = srv_pool_init(&srv->threads[i].pool, srv->threads[i].reactor,
				   srv->conf->max_io_size);
	return rc;
}

int srv_start(const struct srv_conf *conf, struct exports *exports, struct reactor **reactors,
	      unsigned n, struct srv **out, char *err, size_t errlen)
{
	struct srv *srv = srv_alloc(conf, reactors, n);
	int rc;

	if (!srv)
		return fmt_error(-ENOMEM, err, errlen, "no memory");
	rc = srv_setup_geom(srv);
	if (rc) {
		snprintf(err, errlen, "--queue-depth %u and --max-io-size %u do not fit together",
			 conf->queue_depth, conf->max_io_size);
		goto err_free;
	}
	rc = conf->invalidate == SRV_INVALIDATE_NEVER ? 0 : pools_init(srv);
	if (rc) {
		snprintf(err, errlen, "no address space for private buffers");
		goto err_free;
	}
	rc = srv_rnbd_create(srv, exports);
	if (rc) {
		snprintf(err, errlen, "no memory");
		goto err_free;
	}
	rc = srv_listen_start(srv, err, errlen);
	if (rc)
		goto err_free;
	*out = srv;
	return 0;

err_free:
	srv_free(srv);
	return rc;
}

void srv_destroy(struct srv *srv)
{
	assert(srv->life == SRV_STOPPED && list_empty(&srv->sessions));
	srv_free(srv);
}
