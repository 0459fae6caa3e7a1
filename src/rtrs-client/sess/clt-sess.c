/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session: the paths, struct clt_io for requests, and the time that requests wait for a
 * path.  Service thread where clt-sess.h does not say otherwise.  Ends with ops->closed(). */
#define FSM_PREFIX CLT_SESS_

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "clt-sess.h"
#include "log.h"

static struct clt_sess *sess_of(struct clt_path *path)
{
	return container_of(path->conf.io, struct clt_sess, io);
}

static void sess_event(struct clt_sess *sess, enum clt_sess_event event)
{
	fsm_run(&clt_sess_fsm, sess->name, &sess->io.state, event, sess);
}

/* ---- actions ---- */

static void sess_check_closed(struct clt_sess *sess);

/* Was the session lost soon after coming up? */
static bool sess_flaps(const struct clt_sess *sess)
{
	return sess->lasted_ms < CLT_STEADY_MS;
}

/* The number of requests of IO that were ever answered, over the current and the removed paths. */
static uint64_t sess_answered(struct clt_sess *sess)
{
	struct clt_path *path;
	uint64_t n = 0;

	clt_sess_for_each(path, sess)
		n += clt_path_stat_answered(path);
	return n;
}

static void sess_up(void *object)
{
	struct clt_sess *sess = object;
	struct clt_path *path;

	loop_timer_cancel(&sess->timeout_timer);
	sess->ups++;
	sess->up_since_ms = clock_now_ms();
	sess->answered = sess_answered(sess);
	sess->ops->up(sess);
	/* A server that lets this path in may let in the others. */
	if (!sess_flaps(sess)) {
		clt_sess_for_each(path, sess)
			clt_path_retry(path);
	}
}

static void sess_up_late(void *object)
{
	struct clt_sess *sess = object;

	sess_up(sess);
	sess->down_since_ms = 0;
}

static void sess_down(void *object)
{
	struct clt_sess *sess = object;
	uint64_t now = clock_now_ms();
	struct clt_path *path;

	if (sess->up_since_ms)
		sess->lasted_ms = now - sess->up_since_ms;
	/* An address that failed at the last attempt may work by now, so the other paths try at
	 * once.  If the session flaps, the other paths wait at most as long as a path without
	 * others. */
	clt_sess_for_each(path, sess) {
		if (sess_flaps(sess))
			clt_path_hurry(path);
		else
			clt_path_retry(path);
	}
	/* Requests get no new io_timeout from a session that was lost again before the server
	 * answered any request. */
	if (!sess->down_since_ms || !sess_flaps(sess) || sess_answered(sess) != sess->answered)
		sess->down_since_ms = now;
	if (sess->io_timeout_ms == 0)
		sess_event(sess, CLT_SESS_EV_NO_WAIT);
	else if (sess->io_timeout_ms != CLOCK_NEVER)
		loop_timer_set(sess->loop, &sess->timeout_timer,
			       sess->down_since_ms + sess->io_timeout_ms);
	sess->ops->away(sess);
}

static void sess_wake(void *object)
{
	struct clt_sess *sess = object;

	clt_slot_wake(&sess->io);
}

static void sess_expire(void *object)
{
	struct clt_sess *sess = object;

	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(SESSION_LOST, .session = sess->name), sess->name,
		  "no path for %llu ms: requests fail until it is back",
		  (unsigned long long)(clock_now_ms() - sess->down_since_ms));
	sess_wake(sess);
}

static void sess_close(void *object)
{
	struct clt_sess *sess = object;
	struct clt_path *path;

	loop_timer_cancel(&sess->timeout_timer);
	sess_wake(sess);
	clt_sess_for_each(path, sess)
		clt_path_close(path);
	sess_check_closed(sess);	/* all paths may have been closed before */
}

static void sess_tell_closed(void *object)
{
	struct clt_sess *sess = object;

	sess->ops->closed(sess);
}

/* ---- the table ---- */

#define WAITS (IN(NEW) | IN(DOWN))
#define ENDS (IN(CLOSING) | IN(CLOSED))

static const struct fsm_row rows[] = {
	ROW(WAITS, UP, UP, sess_up),
	ROW(IN(EXPIRED), UP, UP, sess_up_late),
	ROW(IN(NEW) | IN(UP), DOWN, DOWN, sess_down),
	ROW(IN(DOWN), NO_WAIT, EXPIRED, sess_wake),
	ROW(IN(DOWN), TIMEOUT, EXPIRED, sess_expire),
	ROW(ALL & ~ENDS, CLOSE, CLOSING, sess_close),
	ROW(IN(CLOSING), CLOSED, CLOSED, sess_tell_closed),

	STAY(IN(UP) | ENDS, UP),
	STAY(IN(DOWN) | IN(EXPIRED) | ENDS, DOWN),
	STAY(ALL & ~IN(DOWN), NO_WAIT),
	STAY(ALL & ~IN(DOWN), TIMEOUT),
	STAY(ENDS, CLOSE),
	STAY(ALL & ~IN(CLOSING), CLOSED),
};

static const char *const states[CLT_SESS_NSTATES] = { "new", "up", "down", "expired", "closing",
						      "closed" };

static const char *const events[CLT_SESS_NEVENTS] = {
	"path up", "path down", "timeout", "no wait", "close", "path closed",
};

const struct fsm clt_sess_fsm = FSM("session", rows, states, events);

static void sess_timeout(struct loop_timer *timer)
{
	struct clt_sess *sess = container_of(timer, struct clt_sess, timeout_timer);

	/* Without a timeout the program ends, and it is no news that requests fail. */
	sess_event(sess, sess->io_timeout_ms ? CLT_SESS_EV_TIMEOUT : CLT_SESS_EV_NO_WAIT);
}

/* ---- calls from a path ---- */

static int sess_path_geometry(struct clt_path *path, char *why, size_t len)
{
	struct clt_sess *sess = sess_of(path);
	const struct rtrs_geom *g = &path->att.geom;
	uint32_t max_io = g->max_io_size;
	int r;

	if (g->max_hdr_size < RTRS_HDR_MAX) {
		snprintf(why, len, "room for headers too small");
		return -EMSGSIZE;
	}
	/* Parts begin on the same boundary as the operation if the size allows. */
	max_io = (uint32_t)align_down(max_io, max_io >= 4096 ? 4096 : 512);
	if (!max_io) {
		snprintf(why, len, "maximum IO size below one sector");
		return -EMSGSIZE;
	}
	if (sess->io.arena.mem)
		max_io = MIN(max_io, (uint32_t)sess->io.arena.room);
	path->att.max_io = max_io;
	if (sess->io.slots.slot)
		return 0;
	atomic_store(&sess->io.max_io_size, max_io);
	r = clt_slot_limit(&sess->io, path->att.depth);
	if (r < 0)
		snprintf(why, len, "no memory for the queue depth");
	return MIN(r, 0);
}

static void sess_path_opening(struct clt_path *path)
{
	clt_epoch_go_on(sess_of(path));
}

static void sess_path_down(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	if (!clt_sess_is_up(sess))
		sess_event(sess, CLT_SESS_EV_DOWN);
}

static bool path_counts(struct clt_path *path)
{
	return clt_path_tries(path) || clt_path_goes_on(path) || clt_attempt_is_up(&path->att);
}

static void sess_path_failed(struct clt_path *path, int err, const char *cause)
{
	struct clt_sess *sess = sess_of(path);

	if (err == CLT_BUSY)
		sess->busy = err;
	if (!clt_sess_any(sess, path_counts))
		sess->ops->failed(sess, sess->busy ? sess->busy : err, cause);
}

static void path_tell_up(struct clt_path *path)
{
	const struct clt_sess *sess = sess_of(path);

	if (path->tell_up && sess->ups)
		log_event(LOG_LEVEL_WARN, CLT_PATH_FIELDS(path, PATH_UP), path->name,
			  "connected%s after %llu ms", path->ups ? " again" : "",
			  (unsigned long long)(clock_now_ms() - path->lost_ms));
	else if (!path->ups)
		log_event(LOG_LEVEL_INFO, CLT_PATH_FIELDS(path, PATH_UP), path->name,
			  "connected: %u connections, queue depth %u, max IO %u",
			  path->att.ncons - 1, path->att.depth, path->att.geom.max_io_size);
	if (!path->ups++)
		log_dbg(path->name, "registration=%s: %s",
			clt_registration_names[path->conf.registration], path->mode_why);
}

static void sess_path_up(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	path_tell_up(path);
	clt_epoch_left(sess, path);
	sess_event(sess, CLT_SESS_EV_UP);
	clt_slot_wake(&sess->io);
}

static void sess_path_standby(struct clt_path *path)
{
	log_event(LOG_LEVEL_INFO, CLT_PATH_FIELDS(path, PATH_UP), path->name,
		  "connected: stands by, because the session uses another server of these exports");
	clt_epoch_left(sess_of(path), path);
}

static void sess_path_silence(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	sess->ops->away(sess);
}

static void sess_path_alive(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	clt_epoch_alive(sess);
}

/* Is @path connecting, up, or about to report a failure? In a closed session a path in FAILING
 * could not report any more. */
static bool path_has_to_tell(struct clt_path *path)
{
	return path_counts(path) || clt_path_state(path) == CLT_PATH_FAILING;
}

static void sess_path_ended(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	clt_epoch_left(sess, path);
	if (clt_path_goes_on(path))
		return;
	if (path->conf.once && !clt_sess_any(sess, path_has_to_tell)) {
		clt_sess_close(sess);
	} else if (path->conf.once) {
		clt_path_close(path);
	} else if (sess->max_reconnect_attempts >= 0 &&
		   path->fails > (unsigned)sess->max_reconnect_attempts) {
		log_event(LOG_LEVEL_ERROR, CLT_PATH_FIELDS(path, PATH_GIVEN_UP), path->name,
			  "given up after %u attempts to reconnect", path->fails - 1);
		clt_path_close(path);
	}
}

static bool path_is_open(struct clt_path *path)
{
	return clt_path_state(path) != CLT_PATH_CLOSED;
}

static void sess_check_closed(struct clt_sess *sess)
{
	if (!clt_sess_any(sess, path_is_open))
		sess_event(sess, CLT_SESS_EV_CLOSED);
}

static void sess_path_closed(struct clt_path *path)
{
	struct clt_sess *sess = sess_of(path);

	/* User messages for this path end, and no others.  ORDER: before clt_epoch_left(): the next
	 * path is greeted with the message that may still wait for this path. */
	clt_slot_wake(&sess->io);
	clt_epoch_left(sess, path);
	if (!clt_sess_is_up(sess))
		sess_event(sess, CLT_SESS_EV_DOWN);
	sess_check_closed(sess);
}

static const struct clt_path_ops path_ops = {
	sess_path_geometry, sess_path_opening, sess_path_standby, sess_path_up, sess_path_down,
	sess_path_failed, sess_path_silence, sess_path_alive, sess_path_ended, sess_path_closed,
};

/* ---- start and end ---- */

int clt_sess_init(struct clt_sess *sess, struct loop *loop, const struct clt_sess_conf *conf,
		  const struct clt_sess_ops *ops)
{
	int r = 0;

	memset(sess, 0, sizeof(*sess));
	snprintf(sess->name, sizeof(sess->name), "%s", conf->name);
	if (conf->uuid)
		memcpy(sess->uuid, conf->uuid, sizeof(sess->uuid));
	else
		random_bytes(sess->uuid, sizeof(sess->uuid));
	sess->loop = loop;
	sess->ops = ops;
	sess->path_ops = &path_ops;
	sess->io_timeout_ms = conf->io_timeout_ms;
	sess->lasted_ms = CLT_STEADY_MS;
	sess->max_reconnect_attempts = conf->max_reconnect_attempts;
	sess->path_conf = conf->path;
	sess->path_conf.io = &sess->io;
	sess->path_conf.sess_name = sess->name;
	sess->path_conf.sess_uuid = sess->uuid;
	sess->path_conf.lineage = conf->uuid ? RTRS_CONN_REQ_LINEAGE : 0;
	sess->path_conf.ncons = 1 + conf->connections;
	if (!conf->path.setup_ms)
		sess->path_conf.setup_ms = RTRS_CONNECT_TIMEOUT_MS;
	if (!conf->path.lessons)
		sess->path_conf.lessons = &sess->own_lessons;
	sess->io.loop = loop;
	sess->io.loops = conf->loops ? conf->loops : &sess->io.loop;
	sess->io.nloops = conf->loops ? conf->nloops : 1;
	sess->io.wait = conf->wait;
	sess->io.poll_us = conf->poll_us;
	atomic_init(&sess->io.policy, conf->policy);
	loop_timer_init(&sess->timeout_timer, sess_timeout);
	clt_epoch_init(sess);
	frwr_lessons_init(&sess->own_lessons);
	clt_slot_init(&sess->io);
	for (unsigned i = 0; r == 0 && i < conf->npaths; i++)
		r = clt_paths_add(sess, &conf->paths[i], NULL);
	if (r < 0)
		clt_sess_fini(sess);
	return r;
}

void clt_sess_fini(struct clt_sess *sess)
{
	clt_paths_fini(sess);
	clt_mem_arena_fini(&sess->io.arena);
	clt_slot_fini(&sess->io);
	frwr_lessons_fini(&sess->own_lessons);
}

void clt_sess_start(struct clt_sess *sess)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess)
		clt_path_start(path);
}

void clt_sess_close(struct clt_sess *sess)
{
	sess_event(sess, CLT_SESS_EV_CLOSE);
}

void clt_sess_lose_patience(struct clt_sess *sess)
{
	struct clt_path *path;

	sess->io_timeout_ms = 0;
	clt_sess_for_each(path, sess)
		clt_path_lose_patience(path);
	if (atomic_load(&sess->io.state) == CLT_SESS_DOWN)
		loop_timer_set(sess->loop, &sess->timeout_timer, clock_now_ms());
}

bool clt_sess_is_impatient(const struct clt_sess *sess)
{
	return sess->paths[0]->impatient;
}

void clt_sess_set_io_timeout(struct clt_sess *sess, uint64_t ms)
{
	if (clt_sess_is_impatient(sess))
		return;
	sess->io_timeout_ms = ms;
	if (atomic_load(&sess->io.state) != CLT_SESS_DOWN)
		return;
	if (ms == CLOCK_NEVER)
		loop_timer_cancel(&sess->timeout_timer);
	else
		loop_timer_set(sess->loop, &sess->timeout_timer, sess->down_since_ms + ms);
}

void clt_sess_set_heartbeats(struct clt_sess *sess, unsigned interval_ms, unsigned misses)
{
	struct clt_path *path;

	sess->path_conf.hb_interval_ms = interval_ms;
	sess->path_conf.hb_misses = misses;
	clt_sess_for_each(path, sess) {
		path->conf.hb_interval_ms = interval_ms;
		path->conf.hb_misses = misses;
	}
}

void clt_sess_set_poll(struct clt_sess *sess, unsigned us)
{
	struct clt_path *path;

	sess->io.poll_us = us;
	clt_sess_for_each(path, sess) {
		for (unsigned i = 1; i < path->att.ncons; i++)
			spin_set_limit(&path->att.cons[i].wait.spin, us);
	}
}

void clt_sess_fail(struct clt_sess *sess, int err, const char *cause)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		if (clt_attempt_is_up(&path->att))
			clt_path_fail(path, err, cause);
	}
}

uint64_t clt_sess_up_ms(const struct clt_sess *sess)
{
	return atomic_load(&sess->io.state) == CLT_SESS_UP ? clock_now_ms() - sess->up_since_ms : 0;
}

uint64_t clt_sess_down_ms(const struct clt_sess *sess)
{
	unsigned state = atomic_load(&sess->io.state);

	return state == CLT_SESS_DOWN || state == CLT_SESS_EXPIRED ? clock_now_ms() -
		sess->down_since_ms : 0;
}

bool clt_sess_is_away(struct clt_sess *sess)
{
	struct clt_path *path;

	if (atomic_load(&sess->io.state) != CLT_SESS_UP)
		return atomic_load(&sess->io.state) == CLT_SESS_DOWN || clt_sess_expired(sess);
	clt_sess_for_each(path, sess) {
		if (clt_path_state(path) == CLT_PATH_UP)
			return false;
	}
	return true;
}
