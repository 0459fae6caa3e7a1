/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker is a thread for calls that block, as opening a file does: a loop gives jobs to its
 * worker and goes on.  The simulation has a worker of its own (tests/sim/sim-worker.c).  Thread of
 * the loop, unless a function says otherwise. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "list.h"
#include "loop.h"

/* Embedded in its owner, and the worker's from worker_run() until done(). */
struct worker_job {
	struct list link;
	void (*work)(struct worker_job *job);	/* thread of the worker; may block */
	void (*done)(struct worker_job *job);	/* thread of the loop; work() has returned */
	struct worker *worker;
	struct loop_msg msg;
};

/* The thread begins with the first job. */
struct worker {
	struct loop *loop;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;			/* jobs, stop; innermost */
	pthread_cond_t changed;
	struct list jobs;			/* worker_job.link */
	bool stop;
};

void worker_init(struct worker *w, struct loop *loop);
/* Run @job->work, behind all jobs from before.  0; or -errno if there is no thread: then neither
 * function of @job runs. */
int worker_run(struct worker *w, struct worker_job *job);
/* Wait until the thread has ended.  Each job is done. */
void worker_fini(struct worker *w);

#endif
