/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements loop.h as an actor of the simulation, for both ends; and reactor.h, for the server: a
 * pass runs whenever something of it is ready, in virtual time.  Owns its watches and the list of
 * what completed; tasks, timers and inbox are the program's own code.  Ends, for a server, when
 * nothing may be watched any more.  There is no loop to run: sim_step() is the loop. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "loop-impl.h"
#include "reactor.h"
#include "sim-core.h"
#include "sim-loop.h"

struct sim_loop {
	struct loop loop;
	struct sim_actor actor;
	struct list watches, unwatched;	/* struct loop_watch */
	struct loop_watch *in_ready;	/* whose ready() runs; NULL again when that unwatches it */
	struct list cqes;
	bool real;			/* has watched a real descriptor */
};

struct reactor {
	struct reactor_part part;	/* first */
	struct sim_loop sim;
	char name[32];
};

static struct sim_loop *to_sim(const struct loop *loop)
{
	return container_of(loop, struct sim_loop, loop);
}

static bool watch_ready(const struct loop_watch *w)
{
	return w->more || (sim_fd_ready(w->fd) & (w->events | POLLHUP | POLLERR));
}

static bool has_work(const struct sim_loop *sim)
{
	struct loop_watch *w;

	if (!list_empty(&sim->unwatched) || !list_empty(&sim->loop.tasks) ||
	    !list_empty(&sim->cqes) || !loop_inbox_empty(&sim->loop))
		return true;
	list_for_each(w, &sim->watches, link) {
		if (watch_ready(w))
			return true;
	}
	return false;
}

bool sim_loop_idle(const struct loop *loop)
{
	return !has_work(to_sim(loop)) && list_empty(&loop->sleep_tasks);
}

static bool actor_ready(struct sim_actor *a)
{
	return !sim_loop_idle(&container_of(a, struct sim_loop, actor)->loop);
}

static uint64_t actor_deadline(struct sim_actor *a)
{
	return loop_deadline(&container_of(a, struct sim_loop, actor)->loop);
}

static void run_cqes(struct sim_loop *sim)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &sim->cqes);
	while ((l = list_pop(&now))) {
		struct sim_cqe *cqe = list_entry(l, struct sim_cqe, link);

		cqe->fn(cqe);
	}
}

/* ready() may unwatch itself and others, so each turn starts from the list's head. */
static void run_watches(struct sim_loop *sim)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &sim->watches);
	while ((l = list_pop(&now))) {
		struct loop_watch *w = list_entry(l, struct loop_watch, link);
		bool more;

		list_add_tail(&sim->watches, &w->link);
		if (!watch_ready(w))
			continue;
		sim->in_ready = w;
		more = w->ready(w);
		if (sim->in_ready)
			w->more = more;
	}
	sim->in_ready = NULL;
}

static void run_closed(struct sim_loop *sim)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &sim->unwatched);
	while ((l = list_pop(&now))) {
		struct loop_watch *w = list_entry(l, struct loop_watch, link);

		w->closed(w);
	}
}

static void run_pass(struct sim_loop *sim)
{
	loop_enter(&sim->loop);
	run_closed(sim);
	run_cqes(sim);
	if (!loop_inbox_empty(&sim->loop))
		loop_run_inbox(&sim->loop);
	run_watches(sim);
	loop_run_timers(&sim->loop, clock_now_ms());
	loop_run_tasks(&sim->loop);
	if (!has_work(sim))
		loop_run_sleep_tasks(&sim->loop);
	loop_leave();
}

static void actor_pass(struct sim_actor *a)
{
	struct sim_loop *sim = container_of(a, struct sim_loop, actor);
	bool real = sim->real;

	if (real)
		sim_fd_use();
	run_pass(sim);
	if (real)
		sim_fd_used();
}

static int sim_loop_init(struct sim_loop *sim)
{
	int rc = loop_init(&sim->loop);

	if (rc)
		return rc;
	list_init(&sim->watches);
	list_init(&sim->unwatched);
	list_init(&sim->cqes);
	sim->actor.ready = actor_ready;
	sim->actor.deadline_ms = actor_deadline;
	sim->actor.run = actor_pass;
	sim_actor_add(&sim->actor);
	return 0;
}

static void sim_loop_fini(struct sim_loop *sim)
{
	sim_actor_del(&sim->actor);
	loop_fini(&sim->loop);
}

int sim_loop_create(struct loop **out)
{
	struct sim_loop *sim = calloc(1, sizeof(*sim));
	int rc = sim ? sim_loop_init(sim) : -ENOMEM;

	if (rc) {
		free(sim);
		return rc;
	}
	*out = &sim->loop;
	return 0;
}

static void forget(struct list *l)
{
	while (list_pop(l))
		;
}

void sim_loop_destroy(struct loop *loop)
{
	struct sim_loop *sim = to_sim(loop);

	forget(&sim->watches);
	forget(&loop->timers);
	sim_loop_fini(sim);
	free(sim);
}

void sim_loop_complete(struct loop *loop, struct sim_cqe *cqe)
{
	list_add_tail(&to_sim(loop)->cqes, &cqe->link);
}

/* ---- loop.h ---- */

int loop_watch(struct loop *loop, struct loop_watch *w)
{
	loop_check_thread(loop);
	assert(!w->loop);
	w->loop = loop;
	w->more = false;
	list_init(&w->link);
	list_add_tail(&to_sim(loop)->watches, &w->link);
	to_sim(loop)->real |= sim_fd_is_real(w->fd);
	return 0;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	w->events = events;
}

void loop_unwatch(struct loop_watch *w)
{
	struct sim_loop *sim;

	if (!w->loop)
		return;
	loop_check_thread(w->loop);
	sim = to_sim(w->loop);
	w->loop = NULL;
	list_del(&w->link);
	if (sim->in_ready == w)
		sim->in_ready = NULL;
	if (w->closed)
		list_add_tail(&sim->unwatched, &w->link);
}

/* ---- reactor.h ---- */

int reactor_create(const char *name, unsigned ring_entries, struct reactor **out)
{
	struct reactor *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	snprintf(r->name, sizeof(r->name), "%s", name);
	rc = sim_loop_init(&r->sim);
	if (rc) {
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void reactor_destroy(struct reactor *r)
{
	if (!r)
		return;
	assert(loop_inbox_empty(&r->sim.loop) && list_empty(&r->sim.cqes));
	assert(list_empty(&r->sim.watches) && list_empty(&r->sim.unwatched));
	sim_loop_fini(&r->sim);
	free(r);
}

const char *reactor_name(const struct reactor *r)
{
	return r->name;
}

struct loop *reactor_loop(struct reactor *r)
{
	return &r->sim.loop;
}
