/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session: its path, its permits, the operations that wait for a path.  Service thread
 * where clt-sess.h does not say otherwise.  Ends with ops->closed(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-path-priv.h"
#include "log.h"
#include "random.h"

static void sess_timeout(struct loop_timer *timer)
{
	struct clt_sess *sess = container_of(timer, struct clt_sess, timeout_timer);

	log_err(sess->name, "no path for %llu ms: requests fail until it is back",
		(unsigned long long)(clock_now_ms() - sess->down_since_ms));
	atomic_store(&sess->expired, true);
	clt_sess_wake_up_waiters(sess);
}

int clt_sess_init(struct clt_sess *sess, struct loop *loop, const struct clt_sess_conf *conf,
		  const struct clt_sess_ops *ops)
{
	int r;

	memset(sess, 0, sizeof(*sess));
	snprintf(sess->name, sizeof(sess->name), "%s", conf->name);
	random_bytes(sess->uuid, sizeof(sess->uuid));
	sess->loop = loop;
	sess->ops = ops;
	sess->io_timeout_ms = conf->io_timeout_ms;
	sess->poll_us = conf->poll_us;
	sess->setup_ms = conf->setup_ms ? conf->setup_ms : RTRS_CONNECT_TIMEOUT_MS;
	sess->registration = conf->registration;
	sess->once = conf->once;
	list_init(&sess->permit_waiters);
	list_init(&sess->up_waiters);
	loop_timer_init(&sess->timeout_timer, sess_timeout);
	r = clt_path_init(&sess->path, sess, 0, &conf->src, &conf->dst, 1 + conf->connections);
	if (r < 0)
		return r;
	frwr_lessons_init(&sess->own_lessons);
	sess->lessons = conf->lessons ? conf->lessons : &sess->own_lessons;
	pthread_mutex_init(&sess->lock, NULL);
	return 0;
}

void clt_sess_fini(struct clt_sess *sess)
{
	clt_path_fini(&sess->path);
	clt_mem_arena_fini(&sess->arena);
	clt_slot_table_fini(&sess->slots);
	frwr_lessons_fini(&sess->own_lessons);
	pthread_mutex_destroy(&sess->lock);
}

void clt_sess_start(struct clt_sess *sess)
{
	clt_path_start(&sess->path);
}

void clt_sess_close(struct clt_sess *sess)
{
	atomic_store(&sess->closing, true);
	loop_timer_cancel(&sess->timeout_timer);
	clt_sess_wake_up_waiters(sess);
	clt_path_close(&sess->path);
}

int clt_sess_geometry(struct clt_sess *sess, const struct rtrs_geom *g, unsigned depth,
		      const char **why)
{
	uint32_t max_io = g->max_io_size;
	unsigned old;

	if (g->max_hdr_size < RTRS_HDR_MAX) {
		*why = "room for headers too small";
		return -EMSGSIZE;
	}
	/* Parts begin on the same boundary as the operation wherever the size allows it. */
	max_io = (uint32_t)align_down(max_io, max_io >= 4096 ? 4096 : 512);
	if (!max_io) {
		*why = "maximum IO size below one sector";
		return -EMSGSIZE;
	}
	if (sess->arena.mem)
		max_io = MIN(max_io, (uint32_t)sess->arena.room);
	if (!sess->slots.slot && clt_slot_table_init(&sess->slots, depth) < 0) {
		*why = "no memory for the queue depth";
		return -ENOMEM;
	}
	atomic_store(&sess->max_io_size, max_io);
	old = atomic_exchange(&sess->slots.limit, MIN(sess->slots.n, depth));
	if (old > depth)
		log_warn(sess->name, "the path came back with queue depth %u instead of %u",
			 depth, old);
	clt_slot_regrant(sess);
	return 0;
}

void clt_sess_down(struct clt_sess *sess)
{
	uint64_t now = clock_now_ms(), up_since_ms = sess->path.up_since_ms;

	if (sess->down)
		return;
	sess->down = true;
	/* A path that is lost again at once gives requests no new time to wait. */
	if (!sess->down_since_ms || !up_since_ms || now - up_since_ms >= CLT_STEADY_MS)
		sess->down_since_ms = now;
	if (sess->io_timeout_ms == 0)
		atomic_store(&sess->expired, true);
	else if (sess->io_timeout_ms != CLOCK_NEVER)
		loop_timer_set(sess->loop, &sess->timeout_timer,
				  sess->down_since_ms + sess->io_timeout_ms);
	if (sess->io_timeout_ms == 0)
		clt_sess_wake_up_waiters(sess);
	sess->ops->down(sess);
}

void clt_sess_lose_patience(struct clt_sess *sess)
{
	sess->io_timeout_ms = 0;
	sess->impatient = true;
	clt_con0_lose_patience(&sess->path);
	if (sess->down && !atomic_load(&sess->expired))
		loop_timer_set(sess->loop, &sess->timeout_timer, clock_now_ms());
}

void clt_sess_up(struct clt_sess *sess)
{
	loop_timer_cancel(&sess->timeout_timer);
	if (sess->was_up && sess->tell_up)
		log_warn(sess->path.name, "connected again after %llu ms",
			 (unsigned long long)(clock_now_ms() - sess->down_since_ms));
	else if (!sess->was_up) {
		log_info(sess->path.name, "connected: %u connections, queue depth %u, max IO %u",
			 sess->path.ncons - 1, sess->path.depth,
			 sess->path.geom.max_io_size);
		log_dbg(sess->path.name, "registration=%s: %s",
			clt_registration_names[sess->registration], sess->path.mode_why);
	}
	sess->down = sess->tell_up = false;
	sess->was_up = true;
	if (atomic_exchange(&sess->expired, false))
		sess->down_since_ms = 0;
	sess->ops->up(sess);
	clt_sess_wake_up_waiters(sess);
}

void clt_sess_wake_up_waiters(struct clt_sess *sess)
{
	struct list *link;

	clt_wait_batch_begin();
	pthread_mutex_lock(&sess->lock);
	while ((link = list_pop(&sess->up_waiters)))
		clt_wait_look(&list_entry(link, struct clt_op, up_link)->waiter);
	pthread_mutex_unlock(&sess->lock);
	clt_wait_batch_end();
}

/* Small requests share a quarter of the connections: many in one send and one receive cost least.
 * Large ones spread over the others, in parallel and out of the way of the small. */
static unsigned pick_cid(const struct clt_path *path, const struct clt_op *op)
{
	unsigned n = path->ncons - 1, small = MAX(n / 4, 1u);

	if (n == small || !op->buf || op->len < CLT_LARGE)
		return 1 + op->hint % small;
	return 1 + small + op->hint % (n - small);
}

struct clt_con *clt_sess_pick(struct clt_sess *sess, const struct clt_op *op)
{
	struct clt_path *path = &sess->path;

	if (op->borrow)
		return atomic_load(&path->opening) ? &path->cons[0] : NULL;
	if (!clt_path_is_up(path))
		return NULL;
	return &path->cons[op->user ? 0 : pick_cid(path, op)];
}

bool clt_sess_expired(const struct clt_sess *sess)
{
	return atomic_load(&sess->expired) || atomic_load(&sess->closing);
}
