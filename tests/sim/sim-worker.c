/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker (worker.h) without a thread: its jobs are fibers of its host, one after another, so a
 * job may wait in virtual time (sim_fiber_wait()) while the loop goes on. */
#include <assert.h>
#include <stdlib.h>

#include "sim-fiber.h"
#include "worker.h"

/* A job at work. */
struct task {
	struct loop_msg msg;
	struct worker_job *job;
	struct sim_fiber *fiber;
};

static void task_begin(struct worker *w);

static void task_done(struct loop_msg *msg)
{
	struct task *t = container_of(msg, struct task, msg);
	struct worker_job *job = t->job;

	sim_fiber_free(t->fiber);
	free(t);
	job->worker->running = false;
	/* ORDER: done() may end the worker. */
	task_begin(job->worker);
	job->done(job);
}

static void task_work(void *arg)
{
	struct task *t = arg;

	t->job->work(t->job);
	/* ORDER: the last act of the fiber, which has ended when the loop has its turn. */
	loop_post(t->job->worker->loop, &t->msg);
}

/* Begin the next job, if there is one and none is at work. */
static void task_begin(struct worker *w)
{
	struct deal_item *turn = w->running ? NULL : deal_take(&w->jobs);
	struct task *t;

	if (!turn)
		return;
	t = calloc(1, sizeof(*t));
	assert(t);
	w->running = true;
	loop_msg_init(&t->msg, task_done);
	t->job = container_of(turn, struct worker_job, turn);
	t->fiber = sim_fiber_start(task_work, t);
}

void worker_init(struct worker *w, struct loop *loop)
{
	*w = (struct worker){ .loop = loop };
	deal_init(&w->jobs);
}

int worker_run(struct worker *w, struct worker_job *job)
{
	job->worker = w;
	deal_add(&w->jobs, &job->turn, job->net);
	task_begin(w);
	return 0;
}

bool worker_cancel(struct worker *w, struct worker_job *job)
{
	if (list_empty(&job->turn.link))
		return false;
	deal_leave(&job->turn);
	return true;
}

void worker_fini(struct worker *w)
{
	assert(!w->running && list_empty(&w->jobs.waiting));
}
