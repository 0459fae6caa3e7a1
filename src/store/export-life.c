/* SPDX-License-Identifier: BSD-3-Clause */
/* Leads each export up and down its ladder (export-life.h); owns the exports on their way, until
 * they are listed, or freed.  Control thread, except where the table of rungs says otherwise. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-life.h"
#include "export-ring.h"
#include "export-state.h"
#include "log.h"
#include "process.h"
#include "store-lead.h"

/* A ring's part of a step.  The message goes to the ring and back. */
struct life_ring {
	struct export_life *life;
	unsigned index;
	struct loop_msg msg;
	struct loop_task task;
	int rc;
	char err[EXPORT_LIFE_ERR];
};

/* ---- the steps ---- */

static int open_up(struct export_life *life, struct export *ex)
{
	return ex->driver->open(ex, life->err, sizeof(life->err));
}

static void open_down(struct export_life *life, struct export *ex)
{
	if (ex->driver->let_go)
		ex->driver->let_go(ex);
}

static int join_up(struct export_life *life, struct export *ex)
{
	return exports_join(life->exports, ex, life->err, sizeof(life->err));
}

static void join_down(struct export_life *life, struct export *ex)
{
	exports_leave(life->exports, ex);
}

/* ORDER: the lock first, because the state of a file belongs to the server with the lock. */
static int take_up(struct export_life *life, struct export *ex)
{
	int rc = exports_take(life->exports, ex, life->err, sizeof(life->err));

	if (rc || ex->spec.readonly)
		return rc;
	rc = export_state_take(life->exports, ex->store);
	if (rc)
		snprintf(life->err, sizeof(life->err),
			 "export '%s': the state of '%s' cannot be kept in the state directory: %s",
			 ex->name, ex->path, fds_strerror(rc));
	return rc;
}

static void take_down(struct export_life *life, struct export *ex)
{
	exports_release(life->exports, ex);
}

static int use_up(struct export_life *life, struct export *ex)
{
	return life->users ? life->users->export_comes(life->arg, ex) : 0;
}

static void use_down(struct export_life *life, struct export *ex)
{
	/* ORDER: before take_down(), which gives the lock back on another thread. */
	store_lead_goes(ex->store, ex);
	if (life->users)
		life->users->export_goes(life->arg, ex);
}

/* Thread of the ring, as ring_down(). */
static int ring_up(struct life_ring *ring)
{
	struct export_life *life = ring->life;
	struct reactor *r = life->reactors[ring->index];
	struct export *ex = life->now;
	int rc = export_ring_add(r, ex, ring->err, sizeof(ring->err));

	if (!rc && export_ring_names(r, ex) == 1) {
		rc = life->users->store_comes(life->arg, ring->index, ex->store);
		if (rc)
			export_ring_del(r, ex);
	}
	return rc;
}

static void ring_down(struct life_ring *ring)
{
	struct export_life *life = ring->life;
	struct reactor *r = life->reactors[ring->index];
	struct export *ex = life->now;

	if (!export_ring_has(r, ex))
		return;
	if (export_ring_names(r, ex) == 1)
		life->users->store_goes(life->arg, ring->index, ex->store);
	export_ring_del(r, ex);
}

/* ---- the ladder ---- */

enum where { ON_CONTROL, ON_WORKER, ON_RINGS };

/* A step from the rung below.  ON_RINGS: ring_up() and ring_down(). */
static const struct rung {
	enum where where;
	/* down() follows up() even if up() has failed */
	bool may_be_half;
	int (*up)(struct export_life *life, struct export *ex);
	void (*down)(struct export_life *life, struct export *ex);	/* NULL: nothing to undo */
} rungs[] = {
	[EXPORT_OPENED] = { ON_WORKER, true, open_up, open_down },
	[EXPORT_JOINED] = { ON_CONTROL, false, join_up, join_down },
	[EXPORT_TAKEN] = { ON_WORKER, true, take_up, take_down },
	[EXPORT_USED] = { ON_CONTROL, false, use_up, use_down },
	[EXPORT_ATTACHED] = { ON_RINGS, true, NULL, NULL },
};

static bool goes_up(const struct export *ex)
{
	return ex->life.goal > ex->life.rung;
}

/* The rung that the next step of @ex reaches or leaves. */
static enum export_rung rung_of_step(const struct export *ex)
{
	return goes_up(ex) ? ex->life.rung + 1 : ex->life.rung;
}

/* Note the end of the step of life->now, with @rc. */
static void step_ended(struct export_life *life, int rc)
{
	struct export *ex = life->now;
	enum export_rung rung = rung_of_step(ex);

	life->under_way = false;
	if (!goes_up(ex)) {
		ex->life.rung = rung - 1;
		return;
	}
	if (!rc || rungs[rung].may_be_half)
		ex->life.rung = rung;
	if (rc) {
		ex->life.goal = EXPORT_PARSED;
		life->rc = rc;
	}
}

static void step_on_control(struct export_life *life, const struct rung *rung)
{
	struct export *ex = life->now;
	int rc = 0;

	if (goes_up(ex))
		rc = rung->up(life, ex);
	else if (rung->down)
		rung->down(life, ex);
	step_ended(life, rc);
}

/* Thread of the worker. */
static void life_job_work(struct worker_job *job)
{
	struct export_life *life = container_of(job, struct export_life, job);
	const struct rung *rung = &rungs[rung_of_step(life->now)];

	if (goes_up(life->now))
		life->rc = rung->up(life, life->now);
	else if (rung->down)
		rung->down(life, life->now);
}

static void life_job_done(struct worker_job *job)
{
	struct export_life *life = container_of(job, struct export_life, job);

	step_ended(life, goes_up(life->now) ? life->rc : 0);
	loop_defer(life->loop, &life->task);
}

/* Without a thread a step up fails; a step down runs here, and blocks. */
static void step_on_worker(struct export_life *life, const struct rung *rung)
{
	int rc = worker_run(&life->worker, &life->job);

	if (!rc)
		return;
	if (goes_up(life->now))
		step_ended(life, rc);
	else
		step_on_control(life, rung);
}

static void life_ring_answered(struct loop_msg *msg)
{
	struct life_ring *ring = container_of(msg, struct life_ring, msg);
	struct export_life *life = ring->life;

	if (ring->rc && !life->rc) {
		life->rc = ring->rc;
		snprintf(life->err, sizeof(life->err), "%s", ring->err);
	}
	if (--life->pending)
		return;
	step_ended(life, goes_up(life->now) ? life->rc : 0);
	loop_defer(life->loop, &life->task);
}

static void ring_answer(struct life_ring *ring, int rc)
{
	ring->rc = rc;
	ring->msg.fn = life_ring_answered;
	loop_post(ring->life->loop, &ring->msg);
}

static void ring_up_msg(struct loop_msg *msg)
{
	struct life_ring *ring = container_of(msg, struct life_ring, msg);

	ring_answer(ring, ring_up(ring));
}

static void ring_down_task(struct loop_task *task)
{
	struct life_ring *ring = container_of(task, struct life_ring, task);

	ring_down(ring);
	ring_answer(ring, 0);
}

/* ORDER: behind the tasks of this pass, which count and send the last answers. */
static void ring_down_msg(struct loop_msg *msg)
{
	struct life_ring *ring = container_of(msg, struct life_ring, msg);

	loop_defer(reactor_loop(ring->life->reactors[ring->index]), &ring->task);
}

static void step_on_rings(struct export_life *life)
{
	unsigned n = life->exports->nrings;

	life->pending = n;
	for (unsigned i = 0; i < n; i++) {
		struct life_ring *ring = &life->rings[i];

		ring->rc = 0;
		ring->err[0] = '\0';
		loop_msg_init(&ring->msg, goes_up(life->now) ? ring_up_msg : ring_down_msg);
		loop_post(reactor_loop(life->reactors[i]), &ring->msg);
	}
}

static void step_begin(struct export_life *life)
{
	const struct rung *rung = &rungs[rung_of_step(life->now)];

	life->under_way = true;
	if (rung->where == ON_CONTROL)
		step_on_control(life, rung);
	else if (rung->where == ON_WORKER)
		step_on_worker(life, rung);
	else
		step_on_rings(life);
}

/* ---- a look at other users ---- */

/* Thread of the worker.  Exports of one driver stand together. */
static void look_work(struct worker_job *job)
{
	struct export_life *life = container_of(job, struct export_life, look);
	const struct export **all = life->looked_at;
	unsigned n = life->nlooked_at, i = 0, from;

	while (i < n) {
		const struct store_driver *driver = all[i]->driver;

		for (from = i; i < n && all[i]->driver == driver; i++)
			;
		if (driver->look)
			driver->look(&all[from], i - from);
	}
}

static void look_ended(struct export_life *life)
{
	free(life->looked_at);
	life->looked_at = NULL;
	life->under_way = false;
	loop_defer(life->loop, &life->task);
}

static void look_done(struct worker_job *job)
{
	look_ended(container_of(job, struct export_life, look));
}

static int by_driver(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)(*(const struct export *const *)a)->driver;
	uintptr_t y = (uintptr_t)(*(const struct export *const *)b)->driver;

	return (x > y) - (x < y);
}

static void look_begin(struct export_life *life)
{
	struct export *ex;
	unsigned n = 0;

	life->unseen = false;
	life->looked_at = calloc(life->exports->n + 1, sizeof(*life->looked_at));
	if (!life->looked_at)
		return;
	list_for_each(ex, &life->exports->list, link) {
		if (!ex->life.seen)
			life->looked_at[n++] = ex;
		ex->life.seen = true;
	}
	qsort(life->looked_at, n, sizeof(*life->looked_at), by_driver);
	life->nlooked_at = n;
	life->under_way = true;
	life->look = (struct worker_job){ .work = look_work, .done = look_done };
	if (worker_run(&life->worker, &life->look))
		look_ended(life);
}

void export_life_look(struct export_life *life)
{
	life->unseen = true;
	loop_defer(life->loop, &life->task);
}

/* ---- whose turn it is ---- */

static bool in_use(const struct export *ex)
{
	return ex->held || (ex->store && ex->store->held);
}

/* Tell of the end of the way of life->now. */
static void life_arrived(struct export_life *life)
{
	struct export *ex = life->now;
	struct export_life_of *of = &ex->life;
	bool gone = of->goal == EXPORT_PARSED;

	life->now = NULL;
	if (life->rc && !life->err[0])
		snprintf(life->err, sizeof(life->err), "export '%s': %s", ex->name,
			 strerror(-life->rc));
	if (!gone)
		list_add_tail(&life->ready, &of->link);
	/* done() may remove @ex. */
	if (of->done)
		of->done(ex, life->rc, life->err, of->arg);
	if (gone)
		export_free(ex);
}

static bool life_next_turn(struct export_life *life)
{
	life->now = list_pop_entry(&life->line, struct export, life.link);
	life->rc = 0;
	life->err[0] = '\0';
	return life->now;
}

static void life_task(struct loop_task *task)
{
	struct export_life *life = container_of(task, struct export_life, task);

	while (!life->under_way && !life->stopped && (life->now || life_next_turn(life))) {
		if (life->now->life.rung == life->now->life.goal)
			life_arrived(life);
		else if (!goes_up(life->now) && in_use(life->now))
			break;	/* life_unheld() goes on */
		else
			step_begin(life);
	}
	/* Once for all that have come with one change, and with one try of failed ones. */
	if (life->unseen && !life->under_way && !life->stopped && !life->now)
		look_begin(life);
	if (!life->under_way && !life->nleads && life->stopped)
		life->stopped(life->stopped_arg);
}

static void life_stand_in_line(struct export_life *life, struct export *ex)
{
	list_add_tail(&life->line, &ex->life.link);
	loop_defer(life->loop, &life->task);
}

static void life_unheld(struct exports *e, struct export *ex)
{
	/* Another name of the store may have held it in the middle of its way down. */
	if (ex == e->life->now) {
		loop_defer(e->life->loop, &e->life->task);
		return;
	}
	if (ex->life.goal != EXPORT_PARSED || ex->life.rung != EXPORT_ATTACHED || in_use(ex))
		return;
	list_del(&ex->life.link);
	life_stand_in_line(e->life, ex);
}

struct export *export_life_add(struct export_life *life, const struct export_spec *spec,
			       export_life_done_fn *done, void *arg)
{
	struct export *ex = export_create(spec);

	if (!ex)
		return NULL;
	ex->all = life->exports;
	ex->life = (struct export_life_of){ .rung = EXPORT_PARSED, .goal = EXPORT_ATTACHED,
					    .done = done, .arg = arg };
	life_stand_in_line(life, ex);
	return ex;
}

/* The removed export that clients could not tell from @ex; NULL: none. */
static struct export *life_removed_like(const struct export_life *life, const struct export *ex)
{
	struct export *old;

	list_for_each(old, &life->exports->removed, life.link) {
		if (old->store == ex->store && export_spec_same(&old->spec, &ex->spec))
			return old;
	}
	return NULL;
}

struct export *export_life_show(struct export_life *life, struct export *ex)
{
	struct export *old = life_removed_like(life, ex);

	if (old) {
		export_life_remove(life, ex);
		ex = old;
	}
	list_del(&ex->life.link);
	exports_show(life->exports, ex);
	export_life_look(life);
	return ex;
}

void export_life_remove(struct export_life *life, struct export *ex)
{
	if (ex->life.rung == EXPORT_SHOWN)
		exports_hide(life->exports, ex);
	else
		list_del(&ex->life.link);
	ex->life = (struct export_life_of){ .rung = EXPORT_ATTACHED, .goal = EXPORT_PARSED };
	if (in_use(ex))
		list_add_tail(&life->exports->removed, &ex->life.link);
	else
		life_stand_in_line(life, ex);
}

void export_life_resized(const struct export *ex)
{
	struct export_life *life = ex->all->life;

	if (life && life->users && life->users->export_resized)
		life->users->export_resized(life->arg, ex);
}

/* ---- begin and end ---- */

int export_life_init(struct export_life *life, struct exports *e, struct reactor *const *reactors,
		     const struct export_users *users, void *arg)
{
	struct store *store;

	*life = (struct export_life){ .exports = e, .loop = reactor_loop(reactors[0]),
				      .reactors = reactors, .users = users, .arg = arg };
	life->rings = calloc(e->nrings, sizeof(*life->rings));
	if (!life->rings)
		return -ENOMEM;
	for (unsigned i = 0; i < e->nrings; i++) {
		life->rings[i].life = life;
		life->rings[i].index = i;
		loop_task_init(&life->rings[i].task, ring_down_task);
	}
	worker_init(&life->worker, life->loop);
	life->job.work = life_job_work;
	life->job.done = life_job_done;
	loop_task_init(&life->task, life_task);
	list_init(&life->line);
	list_init(&life->ready);
	e->life = life;
	e->unheld = life_unheld;
	list_for_each(store, &e->stores, link)
		store_lead_begin(store);
	return 0;
}

void export_life_stop(struct export_life *life, void (*done)(void *arg), void *arg)
{
	struct store *store;

	if (life->under_way && life->now)
		log_info(life->now->name, "waiting for '%s', which is being added or removed",
			 life->now->path);
	atomic_store(&life->exports->stopping, true);
	life->ended = true;
	/* ORDER: the loop goes before the stores do. */
	list_for_each(store, &life->exports->stores, link)
		store_lead_end(store);
	life->stopped = done;
	life->stopped_arg = arg;
	if (!life->under_way)
		loop_defer(life->loop, &life->task);
}

/* Take @ex, which no ring has, down to the ground at once. */
static void life_descend(struct export_life *life, struct export *ex)
{
	for (; ex->life.rung > EXPORT_PARSED; ex->life.rung--) {
		const struct rung *rung = &rungs[ex->life.rung];

		if (rung->down)
			rung->down(life, ex);
	}
	export_free(ex);
}

static void life_descend_all(struct export_life *life, struct list *exports)
{
	struct export *ex;

	while ((ex = list_pop_entry(exports, struct export, life.link)))
		life_descend(life, ex);
}

void export_life_fini(struct export_life *life)
{
	assert(!life->under_way);
	if (life->now)
		life_descend(life, life->now);
	life_descend_all(life, &life->line);
	life_descend_all(life, &life->exports->removed);
	life_descend_all(life, &life->ready);
	life->exports->life = NULL;
	life->exports->unheld = NULL;
	worker_fini(&life->worker);
	free(life->rings);
}
