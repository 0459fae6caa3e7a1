/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the watch, the tasks and the timer of a connection that is served; not the connection.  The
 * loop's thread.
 *
 * How a service ends: fab_poll() returns -ENOTCONN, or the owner stops it.  How it fails: it
 * cannot; a watch that fails is told to the owner, and the timer stands in for the watch. */
#define FSM_PREFIX FAB_SERVICE_

#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "fab-service.h"

#define LOOK_AGAIN_MS 1000

static void service_event(struct fab_service *s, enum fab_service_event event)
{
	/* The owner's table tells the story; the connection, which has the name, may be gone. */
	fsm_run(&fab_service_fsm, NULL, &s->state, event, s);
}

/* ---- the life ---- */

/* A watch that fails leaves the service without news. */
static void service_watch(void *object)
{
	struct fab_service *s = object;

	s->watch.fd = fab_conn_fd(s->fab);
	s->watch.events = POLLIN;
	/* Whoever polled before may have left without arming. */
	s->armed = false;
	fab_service_poll_soon(s);
}

static void service_look_later(void *object)
{
	struct fab_service *s = object;

	loop_timer_set(s->loop, &s->look, clock_now_ms() + LOOK_AGAIN_MS);
}

static void service_leave(void *object)
{
	struct fab_service *s = object;

	loop_timer_cancel(&s->look);
	loop_undefer(&s->again);
	loop_undefer(&s->sleep);
	loop_unwatch(&s->watch);
}

static void service_end(void *object)
{
	struct fab_service *s = object;
	bool watched = s->watch.loop;

	if (s->ops->ended)
		s->ops->ended(s);
	service_leave(s);
	if (!watched || !s->ops->gone)
		service_event(s, FAB_SERVICE_EV_UNWATCHED);
}

static void service_gone(void *object)
{
	struct fab_service *s = object;

	if (s->ops->gone)
		s->ops->gone(s);
}

#define RUNS (IN(SERVING) | IN(FAILED))

static const struct fsm_row service_rows[] = {
	ROW(IN(IDLE) | IN(GONE), BEGIN, SERVING, service_watch),
	ROW(IN(SERVING), FAIL, FAILED, service_look_later),
	ROW(RUNS, END, ENDED, service_end),
	ROW(IN(ENDED), UNWATCHED, GONE, service_gone),
	ROW(RUNS | IN(GONE), STOP, IDLE, service_leave),

	/* too late, or too early: the connection is another service's */
	STAY(ALL & ~IN(SERVING), FAIL),
	STAY(IN(IDLE), STOP),
};

static const char *const service_states[FAB_SERVICE_NSTATES] = {
	"idle", "serving", "failed", "ended", "gone",
};

static const char *const service_events[FAB_SERVICE_NEVENTS] = {
	"begin", "fail", "end", "unwatched", "stop",
};

const struct fsm fab_service_fsm = FSM("service", service_rows, service_states, service_events);

/* ---- polling ---- */

bool fab_service_arm(struct fab_service *s)
{
	short events;

	s->armed = true;
	if (fab_arm(s->fab, &events))
		return true;
	loop_watch_events(&s->watch, events);
	return false;
}

void fab_service_wake(struct fab_service *s)
{
	loop_before_sleep(s->loop, &s->sleep);
}

/* Arm, or arm later, if arming is dear or the owner has put off work.  True: more is ready. */
static bool arm_or_later(struct fab_service *s)
{
	if (!s->ops->before_sleep && !fab_arm_is_dear(s->fab))
		return fab_service_arm(s);
	fab_service_wake(s);
	return false;
}

void fab_service_rearm(struct fab_service *s)
{
	if (fab_service_runs(s) && arm_or_later(s))
		fab_service_poll_soon(s);
}

/* Returns as fab_dispatch(). */
static int service_take(struct fab_service *s)
{
	int n, budget = s->ops->budget;
	short events;

	if (!fab_service_runs(s))
		return -ENOTCONN;
	if (!s->armed)			/* fab_arm() runs between two polls */
		fab_arm(s->fab, &events);
	n = s->ops->poll ? s->ops->poll(s, budget) : fab_dispatch(s->fab, budget);
	s->armed = n >= budget;
	if (n < 0)
		service_event(s, FAB_SERVICE_EV_END);
	return n;
}

/* Poll, and get ready to sleep.  True: more is ready. */
static bool service_poll(struct fab_service *s)
{
	if (service_take(s) < 0)
		return false;
	/* What was put off has its turn, however much comes. */
	return (s->armed && !s->ops->before_sleep) || arm_or_later(s);
}

static bool service_ready(struct loop_watch *watch)
{
	return service_poll(container_of(watch, struct fab_service, watch));
}

static void service_unwatched(struct loop_watch *watch)
{
	service_event(container_of(watch, struct fab_service, watch), FAB_SERVICE_EV_UNWATCHED);
}

static void service_again(struct loop_task *task)
{
	struct fab_service *s = container_of(task, struct fab_service, again);

	if (service_poll(s))
		fab_service_poll_soon(s);
}

static void service_sleep(struct loop_task *task)
{
	struct fab_service *s = container_of(task, struct fab_service, sleep);

	if (s->ops->before_sleep ? s->ops->before_sleep(s) : fab_service_arm(s))
		fab_service_poll_soon(s);
}

static void service_look(struct loop_timer *timer)
{
	struct fab_service *s = container_of(timer, struct fab_service, look);

	service_look_later(s);
	fab_service_poll_soon(s);
}

/* ---- calls of the owner ---- */

void fab_service_init(struct fab_service *s, const struct fab_service_ops *ops)
{
	*s = (struct fab_service){ .ops = ops };
	loop_task_init(&s->again, service_again);
	loop_task_init(&s->sleep, service_sleep);
	loop_timer_init(&s->look, service_look);
	s->watch.ready = service_ready;
	if (ops->gone)
		s->watch.closed = service_unwatched;
}

int fab_service_begin(struct fab_service *s, struct loop *loop, struct fab_conn *fab)
{
	s->loop = loop;
	s->fab = fab;
	service_event(s, FAB_SERVICE_EV_BEGIN);
	return loop_watch(loop, &s->watch);
}

void fab_service_stop(struct fab_service *s)
{
	service_event(s, FAB_SERVICE_EV_STOP);
}

void fab_service_poll_soon(struct fab_service *s)
{
	if (fab_service_runs(s))
		loop_defer(s->loop, &s->again);
}

void fab_service_poll_now(struct fab_service *s)
{
	while (service_take(s) > 0)
		;
	fab_service_poll_soon(s);
}

void fab_service_failed(struct fab_service *s)
{
	service_event(s, FAB_SERVICE_EV_FAIL);
}

void fab_service_disconnect(struct fab_service *s)
{
	fab_disconnect(s->fab);
	service_event(s, FAB_SERVICE_EV_FAIL);
	fab_service_poll_soon(s);
}
