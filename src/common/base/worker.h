/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker is a thread for calls that block, as opening a file does, or that cost, as a step of a
 * handshake does: a loop gives jobs to its worker and goes on.  Jobs of many hosts are dealt out by
 * host (deal.h).  The simulation has a worker of its own (tests/sim/sim-worker.c).  Thread of the
 * loop, unless a function says otherwise. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include "deal.h"
#include "loop.h"

/* Embedded in its owner, and the worker's from worker_run() until done(). */
struct worker_job {
	struct deal_item turn;
	uint64_t net;				/* whose job (fab_addr_net()); 0: all are of one */
	void (*work)(struct worker_job *job);	/* thread of the worker; may block */
	void (*done)(struct worker_job *job);	/* thread of the loop; work() has returned */
	struct worker *worker;
	struct loop_msg msg;
};

/* The thread begins with the first job. */
struct worker {
	struct loop *loop;
	const char *name;			/* of the thread, at most 15 characters */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;			/* jobs, stop; innermost */
	pthread_cond_t changed;
	struct deal jobs;			/* worker_job.turn */
	bool stop;
};

void worker_init(struct worker *w, struct loop *loop);
/* Run @job->work, behind all jobs of its net from before.  0; or -errno if there is no thread: then
 * neither function of @job runs. */
int worker_run(struct worker *w, struct worker_job *job);
/* Take back @job, which was given to @w and is not done: then neither function of it runs.  False:
 * it has begun.  Any thread that keeps done() away meanwhile. */
bool worker_cancel(struct worker *w, struct worker_job *job);
/* Wait until the thread has ended.  Each job is done. */
void worker_fini(struct worker *w);

#endif
