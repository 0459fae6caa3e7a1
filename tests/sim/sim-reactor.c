/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements reactor.h as an actor of the simulation: a pass runs whenever something of it is ready,
 * in virtual time.  Owns its watches and the list of what completed; timers and inbox are the
 * program's own code.  Ends with reactor_destroy(), when nothing may be watched any more.  There is
 * no loop to run: sim_step() is the loop. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "sim-core.h"
#include "sim-reactor.h"

struct reactor {
	struct sim_actor actor;
	char name[32];
	struct list watches, unwatched;	/* struct sim_watch */
	struct list tasks, sleep_tasks;
	struct list cqes;
	struct timers timers;
	struct inbox inbox;
};

/* Whose pass it is.  Between passes everything is anybody's. */
static const struct reactor *running;

/* What other threads of the program may not call. */
static void check_own(const struct reactor *r)
{
	assert(!running || running == r);
}

struct sim_watch {
	struct list link;
	struct reactor_watch *watch;
	bool again;
};

static bool watch_ready(const struct sim_watch *sw)
{
	return sw->again || (sim_fd_ready(sw->watch->fd) & sw->watch->events);
}

static bool has_work(const struct reactor *r)
{
	struct sim_watch *sw;

	if (!list_empty(&r->unwatched) || !list_empty(&r->tasks) || !list_empty(&r->cqes) ||
	    atomic_load(&r->inbox.head))
		return true;
	list_for_each(sw, &r->watches, link) {
		if (watch_ready(sw))
			return true;
	}
	return false;
}

static bool reactor_ready(struct sim_actor *a)
{
	struct reactor *r = container_of(a, struct reactor, actor);

	return has_work(r) || !list_empty(&r->sleep_tasks);
}

static uint64_t reactor_deadline(struct sim_actor *a)
{
	return timers_next(&container_of(a, struct reactor, actor)->timers);
}

static void run_cqes(struct reactor *r)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &r->cqes);
	while ((l = list_pop(&now))) {
		struct sim_cqe *cqe = list_entry(l, struct sim_cqe, link);

		cqe->fn(cqe);
	}
}

/* ready() may unwatch itself and others, so each turn starts from the list's head. */
static void run_watches(struct reactor *r)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &r->watches);
	while (!list_empty(&now)) {
		struct sim_watch *sw;

		l = list_pop(&now);
		sw = list_entry(l, struct sim_watch, link);
		list_add_tail(&r->watches, &sw->link);
		if (watch_ready(sw)) {
			sw->again = false;
			/* @sw lives on if ready() unwatches it: it is freed with closed(). */
			sw->again = sw->watch->ready(sw->watch);
		}
	}
}

static void run_closed(struct reactor *r)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &r->unwatched);
	while ((l = list_pop(&now))) {
		struct sim_watch *sw = list_entry(l, struct sim_watch, link);
		struct reactor_watch *w = sw->watch;

		free(sw);
		w->impl = NULL;
		if (w->closed)
			w->closed(w);
	}
}

static void run_tasks(struct list *tasks)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, tasks);
	while ((l = list_pop(&now))) {
		struct reactor_task *task = list_entry(l, struct reactor_task, link);

		task->fn(task);
	}
}

static void reactor_pass(struct sim_actor *a)
{
	struct reactor *r = container_of(a, struct reactor, actor);

	running = r;
	run_closed(r);
	run_cqes(r);
	inbox_run(&r->inbox);
	run_watches(r);
	timers_run(&r->timers, clock_now_ms());
	run_tasks(&r->tasks);
	if (!has_work(r))
		run_tasks(&r->sleep_tasks);
	running = NULL;
}

int reactor_create(const char *name, unsigned ring_entries, struct reactor **out)
{
	struct reactor *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	snprintf(r->name, sizeof(r->name), "%s", name);
	list_init(&r->watches);
	list_init(&r->unwatched);
	list_init(&r->tasks);
	list_init(&r->sleep_tasks);
	list_init(&r->cqes);
	timers_init(&r->timers);
	rc = inbox_init(&r->inbox);
	if (rc) {
		free(r);
		return rc;
	}
	r->actor.ready = reactor_ready;
	r->actor.deadline_ms = reactor_deadline;
	r->actor.run = reactor_pass;
	sim_actor_add(&r->actor);
	*out = r;
	return 0;
}

void reactor_destroy(struct reactor *r)
{
	if (!r)
		return;
	assert(list_empty(&r->watches) && list_empty(&r->unwatched) && list_empty(&r->cqes));
	sim_actor_del(&r->actor);
	inbox_fini(&r->inbox);
	free(r);
}

bool sim_reactor_idle(struct reactor *r)
{
	return !reactor_ready(&r->actor);
}

const char *reactor_name(const struct reactor *r)
{
	return r->name;
}

void reactor_task_init(struct reactor_task *task, void (*fn)(struct reactor_task *task))
{
	list_init(&task->link);
	task->fn = fn;
}

void reactor_defer(struct reactor *r, struct reactor_task *task)
{
	check_own(r);
	if (list_empty(&task->link))
		list_add_tail(&r->tasks, &task->link);
}

void reactor_before_sleep(struct reactor *r, struct reactor_task *task)
{
	if (list_empty(&task->link))
		list_add_tail(&r->sleep_tasks, &task->link);
}

void reactor_undefer(struct reactor_task *task)
{
	list_del(&task->link);
}

int reactor_watch(struct reactor *r, struct reactor_watch *w)
{
	struct sim_watch *sw = calloc(1, sizeof(*sw));

	check_own(r);
	if (!sw)
		return -ENOMEM;
	sw->watch = w;
	w->reactor = r;
	w->impl = sw;
	list_add_tail(&r->watches, &sw->link);
	return 0;
}

void reactor_watch_events(struct reactor_watch *w, short events)
{
	w->events = events;
}

void reactor_unwatch(struct reactor_watch *w)
{
	struct sim_watch *sw = w->impl;

	check_own(w->reactor);
	list_del(&sw->link);
	list_add_tail(&w->reactor->unwatched, &sw->link);
}

struct timers *reactor_timers(struct reactor *r)
{
	return &r->timers;
}

struct inbox *reactor_inbox(struct reactor *r)
{
	return &r->inbox;
}

void sim_reactor_complete(struct reactor *r, struct sim_cqe *cqe)
{
	list_add_tail(&r->cqes, &cqe->link);
}
