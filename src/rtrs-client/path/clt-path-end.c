/* SPDX-License-Identifier: BSD-3-Clause */
/* An attempt of a path: how its state moves, the addresses of its name, and its end.
 *
 * All attempts end in the same way: clt_path_fail() keeps the first cause; its message,
 * path_fail_msg(), notifies log, session and devices, so that nothing is torn down inside a
 * handler; clt_path_end_drain() disconnects; path_drain_msg() polls until each established
 * connection has drained; path_release() gives memory, and requests in flight, back.  Then
 * clt_path_end_back_off() sets the time of the next attempt, at once if the name has another
 * address, or clt_path_end_close() closes the path. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-names.h"
#include "clt-path-priv.h"
#include "counter.h"
#include "log.h"

/* ---- steps ----
 * They stand below the actions, which cause events, and below the table (clt-path-life.c), which
 * names the actions. */

void clt_path_step(struct clt_path *path, enum clt_path_event event)
{
	unsigned old;
	const struct fsm_row *row =
		fsm_step(&clt_path_fsm, path->name, &path->att.state, event, &old);

	if (row->next != FSM_STAY && (unsigned)row->next != old)
		PROBE3(path__state, path->att.index, old, (unsigned)row->next);
	if (row->action)
		row->action(path);
}

void clt_path_fail(struct clt_path *path, int err, const char *cause)
{
	unsigned old;

	/* FAILING: no new leader from here on, so that the service loop gets the poll roles. */
	fsm_step(&clt_path_fsm, path->name, &path->att.state, CLT_PATH_EV_FAIL, &old);
	if (!(1u << old & CLT_PATH_RUNS))
		return;
	clt_cause_keep(&path->cause, err, cause);
	loop_post(path->loop, &path->fail_msg);
}

/* ---- the addresses of a name, and what failed there ---- */

void clt_path_names_not_found(struct clt_path *path, int err, const char *why)
{
	if (clt_attempt_state(&path->att) != CLT_PATH_RESOLVING)
		return;
	if (!path->names.found.ndst) {
		clt_path_fail(path, err, why);
		return;
	}
	log_dbg(path->name, "%s: trying the previous addresses", why);
	clt_names_begin(&path->names, NULL);
	clt_path_step(path, CLT_PATH_EV_FOUND);
}

/* An answer that comes too late for its attempt is the next one's. */
static void names_found(void *arg, int r, const struct clt_found *found, const char *why)
{
	struct clt_path *path = arg;

	path->lookup = NULL;
	if (r < 0) {
		clt_path_names_not_found(path, r, why);
	} else if (!path->up_since_ms && !clt_names_left(&path->names)) {
		clt_names_begin(&path->names, found);
		clt_path_step(path, CLT_PATH_EV_FOUND);
	}
}

void clt_path_names_look_up(void *object)
{
	struct clt_path *path = object;
	char why[CLT_WHY];
	int r = 0;

	path->dst.len = 0;
	*path->tried = '\0';
	clt_path_give_time(path, path->names.found.ndst ? MIN(NAME_NEXT_MS, path->conf.setup_ms)
						    : path->conf.setup_ms);
	if (!path->lookup)
		r = clt_names_look_up(&path->lookup, path->loop, &path->conf.addr, names_found,
				      path);
	if (r < 0) {
		snprintf(why, sizeof(why), "cannot ask for the addresses: %s", r == -EBUSY ?
			 "the resolver does not answer" : strerror(-r));
		clt_path_names_not_found(path, r, why);
	}
}

bool clt_path_goes_on(struct clt_path *path)
{
	enum clt_path_state state = clt_attempt_state(&path->att);

	return (state == CLT_PATH_FAILING || state == CLT_PATH_DRAINING ||
		state == CLT_PATH_BACKOFF) &&
	       !path->up_since_ms && clt_names_left(&path->names);
}

/* Of an address of a name: put the address in front of @cause, and the causes of those before. */
static void names_note(struct clt_path *path, char cause[CLT_WHY])
{
	char addr[FAB_ADDR_STRLEN];
	size_t at = strlen(path->tried);

	if (!clt_sess_addr_is_named(&path->conf.addr) || !path->dst.len)
		return;
	snprintf(path->tried + at, sizeof(path->tried) - at, "%s%s: %s", at ? "; " : "",
		 fab_addr_format(&path->dst, addr, sizeof(addr)), cause);
	memcpy(cause, path->tried, CLT_WHY);
}

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define STUCK_REQUEST_MS 500		/* a request that is lost sooner says nothing of its path */
#define HELD_FIRST_MS 60000
#define HELD_SHIFT_MAX 4u		/* 16 minutes at most */
#define HELD_FORGET_MS 300000

/* ---- failure ---- */

/* Was the path up long enough to count as a working path? */
static bool path_was_steady(const struct clt_path *path)
{
	return path->up_since_ms && clock_now_ms() - path->up_since_ms >= CLT_STEADY_MS;
}

/* Warn of a failure; returns whether the log has the warning.  Each loss of a steady path is told.
 * For a server that stays away, or is lost again at once, the rules of clt_cause_tell() hold. */
static bool path_tell(struct clt_path *path, bool was_up, const char *cause)
{
	if (path->conf.once || !clt_cause_tell(&path->cause, cause, path_was_steady(path)))
		return false;
	if (was_up)
		log_event(LOG_LEVEL_WARN, CLT_PATH_FIELDS(path, PATH_DOWN), path->name,
			  "lost: %s; reconnecting", cause);
	else
		log_event(LOG_LEVEL_WARN, CLT_PATH_FIELDS(path, PATH_FAILED), path->name,
			  "cannot connect: %s; trying again", cause);
	return true;
}

/* Get the cause of the failure for people.  Whichever end noticed first that nothing more came: a
 * PROBE under way says more. */
static int path_cause(struct clt_path *path, char cause[CLT_WHY])
{
	char noticed[CLT_WHY];
	int err = clt_cause_get(&path->cause, noticed);

	if (path->probe_bytes)
		snprintf(cause, CLT_WHY, "no answer to a probe of %u bytes, do large packets pass "
			 "(MTU)? (%.140s)", path->probe_bytes, noticed);
	else
		memcpy(cause, noticed, CLT_WHY);
	return err;
}

static void path_fail_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, fail_msg);
	bool was_up = path->up_since_ms, goes_on = clt_path_goes_on(path);
	char cause[CLT_WHY];
	int err = path_cause(path, cause);

	if (!was_up)
		names_note(path, cause);
	if (err == CLT_BUSY)
		path->round = err;
	if (err == -ESTALE)
		clt_names_other(&path->names, &path->dst);
	if (err == -EBADMSG) {		/* clt-rx.c */
		path->digest_errors++;
		path->digest_error_ms = clock_now_ms();
	}

	/* The path may have been closed meanwhile. */
	if (clt_attempt_state(&path->att) == CLT_PATH_FAILING) {
		if (was_up || !path->lost_ms)
			path->lost_ms = clock_now_ms();
		path->fails += !goes_on;
		path->failed += !was_up && !goes_on;
		if (!goes_on)
			path->tell_up |= path_tell(path, was_up, cause);
		path->ops->down(path);
		if (!was_up && !goes_on)
			path->ops->failed(path, path->round ? path->round : err, cause);
	}
	clt_path_step(path, CLT_PATH_EV_LOST);
	/* User messages of this epoch end now. */
	clt_slot_wake(path->att.io);
}

/* ---- drain ---- */

void clt_path_end_drain(void *object)
{
	struct clt_path *path = object;

	loop_timer_cancel(&path->setup_timer);
	loop_timer_cancel(&path->hb_timer);
	for (unsigned i = 0; i < path->att.ncons; i++)
		clt_con_shut(&path->att.cons[i]);
	loop_post(path->loop, &path->drain_msg);
}

/* Drain the connections at the end of an attempt.  After con_role_free(), too, and when one has
 * drained. */
static void path_drain_msg(struct loop_msg *msg)
{
	struct clt_path *path = container_of(msg, struct clt_path, drain_msg);
	enum clt_path_state state = clt_attempt_state(&path->att);
	bool ends = state == CLT_PATH_DRAINING || state == CLT_PATH_CLOSING ||
		    state == CLT_PATH_PROVEN, all = ends;

	for (unsigned i = 0; i < path->att.ncons; i++) {
		if (ends)
			all = clt_con_drain(&path->att.cons[i]) && all;
		else if (clt_attempt_is_up(&path->att))
			clt_con_role_free(&path->att.cons[i]);
	}
	if (all)
		clt_path_step(path, CLT_PATH_EV_DRAINED);
}

/* ---- release, back-off, close ---- */

/* Requests that were lost had waited although the server answered heartbeats: their packets are
 * dropped somewhere, for instance for their size.  Such a path comes up again at once, because
 * small packets pass.  HELD_FORGET_MS of being up clear the count. */
static void path_note_stuck(struct clt_path *path, uint64_t waited_ms)
{
	uint64_t up_ms = path->up_since_ms ? clock_now_ms() - path->up_since_ms : 0;

	if (up_ms > HELD_FORGET_MS)
		path->stuck = 0;
	/* A PROBE that was lost kept the path from coming up. */
	if (path->probe_bytes)
		return;
	if (waited_ms >= STUCK_REQUEST_MS && atomic_load(&path->att.hb.missed) <= 1)
		path->stuck++;
}

static void path_release(struct clt_path *path)
{
	for (unsigned i = 0; i < path->att.ncons; i++)
		clt_tx_seal(&path->att.cons[i]);
	clt_setup_release(path);
	path_note_stuck(path, clt_tx_fail_over(&path->att));
}

/* How long a path that lost requests twice waits while another one is up; 0: not longer than other
 * paths. */
static uint64_t path_held_ms(struct clt_path *path)
{
	uint64_t ms;

	if (path->stuck < 2 || atomic_load(&path->att.io->state) != CLT_SESS_UP)
		return 0;
	ms = (uint64_t)HELD_FIRST_MS << MIN(path->stuck - 2, HELD_SHIFT_MAX);
	log_warn(path->name, "has lost requests %u times although the server answers heartbeats: "
		 "not used for %llu s while another path is up; do large packets pass (MTU)?",
		 path->stuck, (unsigned long long)ms / 1000);
	return ms;
}

void clt_path_end_back_off(void *object)
{
	struct clt_path *path = object;
	uint64_t ms = 0;
	uint16_t rnd;

	path_release(path);
	if (clt_path_goes_on(path)) {
		loop_timer_set(path->loop, &path->retry_timer, clock_now_ms());
		path->ops->ended(path);
		return;
	}
	random_bytes(&rnd, sizeof(rnd));
	if (path_was_steady(path))
		path->tries = 0;
	if (path->tries) {
		unsigned shift = MIN(path->tries - 1, 6u);
		bool alone = atomic_load(&path->att.io->state) != CLT_SESS_UP;

		/* Clients that come again at once push each other out at a busy server. */
		ms = MIN((uint64_t)BACKOFF_FIRST_MS << shift,
			 (uint64_t)(alone && !path->round ? CLT_BACKOFF_ALONE_MS : BACKOFF_MAX_MS));
		ms = ms * 3 / 4 + ms / 2 * rnd / UINT16_MAX;
	}
	path->round = 0;
	path->tries++;
	ms = MAX(ms, path_held_ms(path));
	loop_timer_set(path->loop, &path->retry_timer, clock_now_ms() + ms);
	path->ops->ended(path);
}

static void path_retry_timer(struct loop_timer *timer)
{
	clt_path_step(container_of(timer, struct clt_path, retry_timer), CLT_PATH_EV_RETRY);
}

void clt_path_end_close(void *object)
{
	struct clt_path *path = object;

	loop_timer_cancel(&path->retry_timer);
	clt_names_end(&path->names);
	if (path->lookup)
		clt_names_forget(path->lookup);
	path->lookup = NULL;
	path->ops->closed(path);
}

void clt_path_end_release_and_close(void *object)
{
	path_release(object);
	clt_path_end_close(object);
}

void clt_path_end_init(struct clt_path *path)
{
	loop_msg_init(&path->fail_msg, path_fail_msg);
	loop_msg_init(&path->drain_msg, path_drain_msg);
	loop_timer_init(&path->retry_timer, path_retry_timer);
}
