/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the thread of a worker and its line of jobs. */
#include <config.h>

#include <assert.h>

#include "cleanup.h"
#include "signals.h"
#include "worker.h"

static void job_done(struct loop_msg *msg)
{
	struct worker_job *job = container_of(msg, struct worker_job, msg);

	job->done(job);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct deal_item *turn;
	struct worker_job *job;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		turn = deal_take(&w->jobs);
		if (!turn) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		job = container_of(turn, struct worker_job, turn);
		pthread_mutex_unlock(&w->lock);
		job->work(job);
		/* RACE: with the message the owner of @job may free it. */
		loop_post(w->loop, &job->msg);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void worker_init(struct worker *w, struct loop *loop)
{
	*w = (struct worker){ .loop = loop, .name = "worker" };
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	deal_init(&w->jobs);
}

int worker_run(struct worker *w, struct worker_job *job)
{
	int rc = w->running ? 0 : signals_thread(&w->thread, worker_main, w);

	if (rc)
		return rc;
	if (!w->running)
		pthread_setname_np(w->thread, w->name);
	w->running = true;
	job->worker = w;
	loop_msg_init(&job->msg, job_done);
	LOCK_SCOPE(&w->lock);
	deal_add(&w->jobs, &job->turn, job->net);
	pthread_cond_signal(&w->changed);
	return 0;
}

bool worker_cancel(struct worker *w, struct worker_job *job)
{
	LOCK_SCOPE(&w->lock);
	if (list_empty(&job->turn.link))
		return false;
	deal_leave(&job->turn);
	return true;
}

void worker_fini(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	assert(list_empty(&w->jobs.waiting));
	w->stop = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (w->running)
		pthread_join(w->thread, NULL);
	w->running = false;
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}
