/* SPDX-License-Identifier: BSD-3-Clause */
/* Performs the actions of clt-fsm.h for one path.
 *
 * Service thread, except clt_path_fail(), which only notes the cause and posts a message, so that
 * nothing is torn down inside a handler.  A path ends its attempt in one way: failed or closed,
 * disconnected, polled until each established connection has drained, released; then it backs off
 * or is closed. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "clt-path-priv.h"
#include "log.h"
#include "random.h"

#define DRAIN_AGAIN_MS 1000
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define TELL_AGAIN_MS 60000		/* the same cause, while it does not connect */

/* ---- failure ---- */

void clt_path_fail(struct clt_path *path, int err, const char *fmt, ...)
{
	va_list ap;

	if (atomic_exchange(&path->failing, true))
		return;
	/* No new leader from here on, so that the service loop gets the poll roles. */
	atomic_store(&path->up, false);
	pthread_mutex_lock(&path->cause_lock);
	path->fail_err = err;
	va_start(ap, fmt);
	vsnprintf(path->cause, sizeof(path->cause), fmt, ap);
	va_end(ap);
	pthread_mutex_unlock(&path->cause_lock);
	loop_post(path->sess->loop, &path->fail_msg);
}

static bool was_steady(const struct clt_path *path)
{
	return path->up_since_ms && clock_now_ms() - path->up_since_ms >= CLT_STEADY_MS;
}

/* Each loss is told; a server that stays away, or is lost again at once, is told once a minute, or when
 * the reason changes. */
static void path_tell(struct clt_path *path, bool was_up, const char *cause)
{
	uint64_t now = clock_now_ms();

	if (path->sess->once)
		return;
	if (!was_steady(path) && !strcmp(cause, path->told) && now - path->told_ms < TELL_AGAIN_MS)
		return;
	if (was_up)
		log_warn(path->name, "lost: %s; reconnecting", cause);
	else
		log_warn(path->name, "cannot connect: %s; trying again", cause);
	path->sess->tell_up = true;
	path->told_ms = now;
	snprintf(path->told, sizeof(path->told), "%s", cause);
}

static void path_fail_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, fail_msg);
	bool was_up = path->state == CLT_UP;
	char cause[sizeof(path->cause)];
	int err;

	pthread_mutex_lock(&path->cause_lock);
	memcpy(cause, path->cause, sizeof(cause));
	err = path->fail_err;
	pthread_mutex_unlock(&path->cause_lock);

	if (path->state != CLT_CLOSING && path->state != CLT_CLOSED) {
		path_tell(path, was_up, cause);
		clt_sess_down(path->sess);
		if (!was_up)
			path->sess->ops->failed(path->sess, err, cause);
	}
	clt_path_event(path, CLT_EV_FAIL);
	/* User messages that were meant for this life of the path end now. */
	clt_sess_wake_up_waiters(path->sess);
}

void clt_path_watch(struct clt_path *path, struct loop_watch *watch, int fd, short events,
		    bool (*ready)(struct loop_watch *watch))
{
	int r;

	watch->ready = ready;
	if (watch->loop) {
		loop_watch_events(watch, events);
		return;
	}
	watch->fd = fd;
	watch->events = events;
	r = loop_watch(path->sess->loop, watch);
	if (r < 0)
		clt_path_fail(path, r, "cannot watch a descriptor: %s", strerror(-r));
}

/* ---- actions ---- */

/* 0, or -errno after clt_path_fail(). */
static int make_cm(struct clt_path *path)
{
	const struct fab_cm_conf conf = { .provider = path->dst.provider };
	int r = path->cm ? 0 : fab_cm_create(&conf, &path->cm);

	if (r == -ENODEV)
		clt_path_fail(path, r, "this machine has no RDMA device");
	else if (r < 0)
		clt_path_fail(path, r, "cannot create a connection manager: %s", strerror(-r));
	if (r < 0) {
		path->cm = NULL;
		return r;
	}
	clt_path_watch(path, &path->cm_watch, fab_cm_fd(path->cm), POLLIN, clt_setup_cm_ready);
	return 0;
}

static void act_connect(struct clt_path *path)
{
	path->life++;
	path->next_cid = 0;
	path->up_since_ms = 0;
	atomic_store(&path->failing, false);
	loop_timer_set(path->sess->loop, &path->setup_timer, clock_now_ms() + path->sess->setup_ms);
	if (make_cm(path) == 0)
		clt_setup_con(path);
}

static void act_open(struct clt_path *path)
{
	atomic_store(&path->opening, true);
	clt_tx_unseal(&path->cons[0]);
	path->sess->ops->opening(path->sess, path);
}

static void act_up(struct clt_path *path)
{
	struct clt_sess *sess = path->sess;

	loop_timer_cancel(&path->setup_timer);
	atomic_store(&path->opening, false);
	for (unsigned i = 1; i < path->ncons; i++) {
		struct clt_con *con = &path->cons[i];

		clt_tx_unseal(con);
		clt_drain_watch_hangup(con);
		clt_wait_con_release(con);
	}
	clt_con0_up(path);
	path->up_since_ms = clock_now_ms();
	/* RACE: a failure in between must win, or nobody would take the path down again. */
	atomic_store(&path->up, true);
	if (atomic_load(&path->failing))
		atomic_store(&path->up, false);
	clt_sess_up(sess);
}

/* A device that is gone, or broken, wakes nobody. */
static void drain_again_later(struct clt_path *path)
{
	loop_timer_set(path->sess->loop, &path->retry_timer, clock_now_ms() + DRAIN_AGAIN_MS);
}

static void act_drain(struct clt_path *path)
{
	atomic_store(&path->failing, true);
	atomic_store(&path->up, false);
	atomic_store(&path->opening, false);
	loop_timer_cancel(&path->setup_timer);
	clt_con0_down(path);
	clt_drain_start(path);
	drain_again_later(path);
}

static void act_release(struct clt_path *path)
{
	loop_timer_cancel(&path->retry_timer);
	for (unsigned i = 0; i < path->ncons; i++)
		clt_tx_seal(&path->cons[i]);
	clt_setup_release(path);
	clt_tx_fail_over(path);
}

/* The first try after a steady path follows at once; then 100 ms .. 5 s, a quarter more or less, so that clients of
 * one server do not come back in step. */
static void act_backoff(struct clt_path *path)
{
	uint64_t ms = 0;
	uint16_t rnd;

	random_bytes(&rnd, sizeof(rnd));
	if (was_steady(path))
		path->tries = 0;
	if (path->tries) {
		unsigned shift = MIN(path->tries - 1, 6u);

		ms = MIN((uint64_t)BACKOFF_FIRST_MS << shift, (uint64_t)BACKOFF_MAX_MS);
		ms = ms * 3 / 4 + ms / 2 * rnd / UINT16_MAX;
	}
	path->tries++;
	loop_timer_set(path->sess->loop, &path->retry_timer, clock_now_ms() + ms);
}

void clt_path_event(struct clt_path *path, enum clt_event event)
{
	static const struct {
		unsigned bit;
		void (*perform)(struct clt_path *path);
	} actions[] = {
		{ CLT_ACT_CONNECT, act_connect }, { CLT_ACT_NEXT_CON, clt_setup_con },
		{ CLT_ACT_SEND_INFO, clt_setup_info }, { CLT_ACT_OPEN, act_open },
		{ CLT_ACT_UP, act_up }, { CLT_ACT_DRAIN, act_drain },
		{ CLT_ACT_RELEASE, act_release }, { CLT_ACT_BACKOFF, act_backoff },
	};
	enum clt_state old = path->state;
	unsigned todo = clt_fsm_step(&path->state, event);

	if (path->state != old)
		log_dbg(path->name, "%s -> %s", clt_fsm_state_name(old), clt_fsm_state_name(path->state));
	for (unsigned i = 0; i < ARRAY_SIZE(actions); i++) {
		if (todo & actions[i].bit)
			actions[i].perform(path);
	}
	if (todo & CLT_ACT_CLOSED)
		path->sess->ops->closed(path->sess);
	else if ((todo & CLT_ACT_BACKOFF) && path->sess->once)
		clt_sess_close(path->sess);
}

/* ---- timers, start and end ---- */

static void path_setup_timer(struct loop_timer *timer)
{
	struct clt_path *path = container_of(timer, struct clt_path, setup_timer);

	clt_path_fail(path, -ETIMEDOUT, "no answer within %u s", path->sess->setup_ms / 1000);
}

/* To begin again, or, while it is draining, to look again. */
static void path_retry_timer(struct loop_timer *timer)
{
	struct clt_path *path = container_of(timer, struct clt_path, retry_timer);

	if (path->state == CLT_BACKOFF) {
		clt_path_event(path, CLT_EV_RETRY);
		return;
	}
	loop_post(path->sess->loop, &path->drain_msg);
	drain_again_later(path);
}

int clt_path_init(struct clt_path *path, struct clt_sess *sess, unsigned index,
		  const struct fab_addr *src, const struct fab_addr *dst, unsigned ncons)
{
	char d[FAB_ADDR_STRLEN];
	int r = -ENOMEM;

	memset(path, 0, sizeof(*path));
	path->sess = sess;
	path->index = index;
	path->src = *src;
	path->dst = *dst;
	path->ncons = ncons;
	snprintf(path->name, sizeof(path->name), "path %s", fab_addr_format(dst, d, sizeof(d)));
	random_bytes(path->uuid, sizeof(path->uuid));
	pthread_mutex_init(&path->cause_lock, NULL);
	loop_msg_init(&path->fail_msg, path_fail_msg);
	clt_drain_init(path);
	clt_con0_init(path);
	loop_timer_init(&path->setup_timer, path_setup_timer);
	loop_timer_init(&path->retry_timer, path_retry_timer);

	path->cons = aligned_alloc(64, align_up(ncons * sizeof(*path->cons), 64));
	if (!path->cons)
		goto err_lock;
	memset(path->cons, 0, ncons * sizeof(*path->cons));
	for (unsigned i = 0; i < ncons; i++) {
		struct clt_con *con = &path->cons[i];

		con->path = path;
		con->cid = i;
		con->key = 1 + index * RTRS_MAX_CONS + i;
		r = i ? clt_wait_con_init(con) : 0;
		if (r < 0) {
			while (--i)
				clt_wait_con_fini(&path->cons[i]);
			goto err_cons;
		}
	}
	return 0;

err_cons:
	free(path->cons);
err_lock:
	pthread_mutex_destroy(&path->cause_lock);
	return r;
}

void clt_path_fini(struct clt_path *path)
{
	for (unsigned i = 1; i < path->ncons; i++)
		clt_wait_con_fini(&path->cons[i]);
	clt_mem_detach(path);
	if (path->pd)
		fab_pd_destroy(path->pd);
	if (path->cm)
		fab_cm_destroy(path->cm);
	free(path->cons);
	pthread_mutex_destroy(&path->cause_lock);
}

void clt_path_start(struct clt_path *path)
{
	clt_path_event(path, CLT_EV_START);
}

void clt_path_close(struct clt_path *path)
{
	if (path->state == CLT_CLOSING || path->state == CLT_CLOSED)
		return;
	loop_timer_cancel(&path->retry_timer);
	clt_path_event(path, CLT_EV_CLOSE);
	if (path->state == CLT_CLOSING)
		drain_again_later(path);
}

void clt_path_opened(struct clt_path *path)
{
	if (path->state == CLT_OPENING && !atomic_load(&path->failing))
		clt_path_event(path, CLT_EV_OPENED);
}
