/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session: its path, what requests have of it, and how long they wait for a path.  Service thread
 * where clt-sess.h does not say otherwise.  Ends with ops->closed(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-sess.h"
#include "log.h"
#include "random.h"

static struct clt_sess *sess_of(struct clt_path *path)
{
	return container_of(path, struct clt_sess, path);
}

static void sess_timeout(struct loop_timer *timer)
{
	struct clt_sess *sess = container_of(timer, struct clt_sess, timeout_timer);

	log_err(sess->name, "no path for %llu ms: requests fail until it is back",
		(unsigned long long)(clock_now_ms() - sess->down_since_ms));
	atomic_store(&sess->io.expired, true);
	clt_slot_wake(&sess->io);
}

/* ---- what the path tells ---- */

static int path_geometry(struct clt_path *path, char *why, size_t len)
{
	struct clt_sess *sess = sess_of(path);
	const struct rtrs_geom *g = &path->att.geom;
	unsigned depth = path->att.depth;
	uint32_t max_io = g->max_io_size;
	int old;

	if (g->max_hdr_size < RTRS_HDR_MAX) {
		snprintf(why, len, "room for headers too small");
		return -EMSGSIZE;
	}
	/* Parts begin on the same boundary as the operation wherever the size allows it. */
	max_io = (uint32_t)align_down(max_io, max_io >= 4096 ? 4096 : 512);
	if (!max_io) {
		snprintf(why, len, "maximum IO size below one sector");
		return -EMSGSIZE;
	}
	if (sess->io.arena.mem)
		max_io = MIN(max_io, (uint32_t)sess->io.arena.room);
	atomic_store(&sess->io.max_io_size, max_io);
	old = clt_slot_limit(&sess->io, depth);
	if (old < 0) {
		snprintf(why, len, "no memory for the queue depth");
		return old;
	}
	if ((unsigned)old > depth)
		log_warn(sess->name, "the path came back with queue depth %u instead of %d", depth, old);
	return 0;
}

static void path_opening(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	sess->ops->opening(sess);
}

static void path_down(struct clt_path *path, bool told)
{
	struct clt_sess *sess = sess_of(path);
	uint64_t now = clock_now_ms();

	sess->tell_up |= told;
	if (sess->down)
		return;
	sess->down = true;
	/* A path that is lost again at once gives requests no new time to wait. */
	if (!sess->down_since_ms || !path->up_since_ms || clt_path_was_steady(path))
		sess->down_since_ms = now;
	if (sess->io_timeout_ms == 0) {
		atomic_store(&sess->io.expired, true);
		clt_slot_wake(&sess->io);
	} else if (sess->io_timeout_ms != CLOCK_NEVER) {
		loop_timer_set(sess->loop, &sess->timeout_timer,
				  sess->down_since_ms + sess->io_timeout_ms);
	}
	sess->ops->down(sess);
}

static void path_failed(struct clt_path *path, int err, const char *cause)
{
	struct clt_sess *sess = sess_of(path);

	sess->ops->failed(sess, err, cause);
}

static void path_up(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	loop_timer_cancel(&sess->timeout_timer);
	if (sess->was_up && sess->tell_up)
		log_warn(path->name, "connected again after %llu ms",
			 (unsigned long long)(clock_now_ms() - sess->down_since_ms));
	else if (!sess->was_up) {
		log_info(path->name, "connected: %u connections, queue depth %u, max IO %u",
			 path->att.ncons - 1, path->att.depth, path->att.geom.max_io_size);
		log_dbg(path->name, "registration=%s: %s",
			clt_registration_names[sess->registration], path->mode_why);
	}
	sess->down = sess->tell_up = false;
	sess->was_up = true;
	if (atomic_exchange(&sess->io.expired, sess->closing))
		sess->down_since_ms = 0;
	sess->ops->up(sess);
	clt_slot_wake(&sess->io);
}

static void path_silence(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	sess->ops->silence(sess);
}

static void path_ended(struct clt_path *path)
{
	if (sess_of(path)->once)
		clt_sess_close(sess_of(path));
}

static void path_closed(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	sess->ops->closed(sess);
}

static const struct clt_path_ops path_ops = {
	path_geometry, path_opening, path_up, path_down, path_failed, path_silence, path_ended, path_closed,
};

/* ---- start and end ---- */

int clt_sess_init(struct clt_sess *sess, struct loop *loop, const struct clt_sess_conf *conf,
		  const struct clt_sess_ops *ops)
{
	struct clt_path_conf path = {
		.io = &sess->io,
		.sess_name = sess->name,
		.sess_uuid = sess->uuid,
		.src = conf->src,
		.dst = conf->dst,
		.ncons = 1 + conf->connections,
		.setup_ms = conf->setup_ms ? conf->setup_ms : RTRS_CONNECT_TIMEOUT_MS,
		.registration = conf->registration,
		.lessons = conf->lessons ? conf->lessons : &sess->own_lessons,
		.once = conf->once,
	};
	int r;

	memset(sess, 0, sizeof(*sess));
	snprintf(sess->name, sizeof(sess->name), "%s", conf->name);
	random_bytes(sess->uuid, sizeof(sess->uuid));
	sess->loop = loop;
	sess->ops = ops;
	sess->io_timeout_ms = conf->io_timeout_ms;
	sess->registration = conf->registration;
	sess->once = conf->once;
	sess->io.loop = loop;
	sess->io.poll_us = conf->poll_us;
	sess->io.att = &sess->path.att;
	loop_timer_init(&sess->timeout_timer, sess_timeout);
	r = clt_path_init(&sess->path, &path, &path_ops);
	if (r < 0)
		return r;
	frwr_lessons_init(&sess->own_lessons);
	clt_slot_init(&sess->io);
	return 0;
}

void clt_sess_fini(struct clt_sess *sess)
{
	clt_path_fini(&sess->path);
	clt_mem_arena_fini(&sess->io.arena);
	clt_slot_fini(&sess->io);
	frwr_lessons_fini(&sess->own_lessons);
}

void clt_sess_start(struct clt_sess *sess)
{
	clt_path_start(&sess->path);
}

void clt_sess_close(struct clt_sess *sess)
{
	sess->closing = true;
	atomic_store(&sess->io.expired, true);
	loop_timer_cancel(&sess->timeout_timer);
	clt_slot_wake(&sess->io);
	clt_path_close(&sess->path);
}

void clt_sess_lose_patience(struct clt_sess *sess)
{
	sess->io_timeout_ms = 0;
	clt_path_lose_patience(&sess->path);
	if (sess->down && !atomic_load(&sess->io.expired))
		loop_timer_set(sess->loop, &sess->timeout_timer, clock_now_ms());
}

/* ---- for the upper layer ---- */

void clt_sess_opened(struct clt_sess *sess)
{
	clt_path_opened(&sess->path);
}

void clt_sess_fail(struct clt_sess *sess, int err, const char *cause)
{
	clt_path_fail(&sess->path, err, "%s", cause);
}

bool clt_sess_is_away(const struct clt_sess *sess)
{
	return sess->down || sess->path.silent;
}

int clt_sess_bound(struct clt_sess *sess, unsigned life)
{
	const struct clt_path *path = &sess->path;

	if (life != path->att.life || path->state < CLT_OPENING || path->state > CLT_UP)
		return -ECONNABORTED;
	return clt_sess_is_up(sess) ? 0 : CLT_AGAIN;
}
