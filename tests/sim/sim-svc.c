/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the plugin's clt-svc.h as an actor of the simulation: tasks before timers before
 * watches, in virtual time.  Owns the loop's lists; one thread. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "clt-svc.h"
#include "sim-core.h"

struct clt_svc {
	struct sim_actor actor;
	struct list tasks, timers, watches;
};

static bool svc_ready(struct sim_actor *a)
{
	struct clt_svc *svc = container_of(a, struct clt_svc, actor);
	struct clt_watch *w;

	if (!list_empty(&svc->tasks))
		return true;
	list_for_each(w, &svc->watches, link) {
		if (sim_fd_ready(w->fd) & w->events)
			return true;
	}
	return false;
}

static uint64_t svc_deadline(struct sim_actor *a)
{
	struct clt_svc *svc = container_of(a, struct clt_svc, actor);

	return list_empty(&svc->timers) ?
		       CLOCK_NEVER :
		       list_entry(svc->timers.next, struct clt_timer, link)->at_ms;
}

static void run_tasks(struct clt_svc *svc)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &svc->tasks);
	while ((l = list_pop(&now))) {
		struct clt_task *task = list_entry(l, struct clt_task, link);

		task->fn(task);
	}
}

static void run_timers(struct clt_svc *svc)
{
	while (svc_deadline(&svc->actor) <= clock_now_ms()) {
		struct clt_timer *timer =
			list_entry(list_pop(&svc->timers), struct clt_timer, link);

		timer->fn(timer);
	}
}

/* A watch function may free any watch: each runs from the list of those not run yet. */
static void run_watches(struct clt_svc *svc)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &svc->watches);
	while ((l = list_pop(&now))) {
		struct clt_watch *w = list_entry(l, struct clt_watch, link);
		short revents = sim_fd_ready(w->fd) & w->events;

		list_add_tail(&svc->watches, &w->link);
		if (revents)
			w->ready(w, revents);
	}
}

static void svc_pass(struct sim_actor *a)
{
	struct clt_svc *svc = container_of(a, struct clt_svc, actor);

	run_tasks(svc);
	run_timers(svc);
	run_watches(svc);
}

int clt_svc_create(struct clt_svc **out)
{
	struct clt_svc *svc = calloc(1, sizeof(*svc));

	if (!svc)
		return -ENOMEM;
	list_init(&svc->tasks);
	list_init(&svc->timers);
	list_init(&svc->watches);
	svc->actor.ready = svc_ready;
	svc->actor.deadline_ms = svc_deadline;
	svc->actor.run = svc_pass;
	sim_actor_add(&svc->actor);
	*out = svc;
	return 0;
}

void clt_svc_destroy(struct clt_svc *svc)
{
	while (list_pop(&svc->tasks))
		;
	while (list_pop(&svc->timers))
		;
	while (list_pop(&svc->watches))
		;
	sim_actor_del(&svc->actor);
	free(svc);
}

void clt_svc_post(struct clt_svc *svc, struct clt_task *task)
{
	if (list_empty(&task->link))
		list_add_tail(&svc->tasks, &task->link);
}

void clt_svc_cancel(struct clt_svc *svc, struct clt_task *task)
{
	list_del(&task->link);
}

void clt_svc_timer_set(struct clt_svc *svc, struct clt_timer *timer, uint64_t at_ms)
{
	struct list *at;

	list_del(&timer->link);
	at = svc->timers.prev;
	while (at != &svc->timers && list_entry(at, struct clt_timer, link)->at_ms > at_ms)
		at = at->prev;
	timer->at_ms = at_ms;
	list_add_head(at, &timer->link);
}

void clt_svc_timer_cancel(struct clt_timer *timer)
{
	list_del(&timer->link);
}

void clt_svc_watch(struct clt_svc *svc, struct clt_watch *watch)
{
	list_add_tail(&svc->watches, &watch->link);
}

void clt_svc_unwatch(struct clt_watch *watch)
{
	list_del(&watch->link);
}
