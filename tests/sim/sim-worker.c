/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker (worker.h) without a thread: a job runs in a pass of the loop, where nothing blocks. */
#include <assert.h>

#include "worker.h"

static void job_run(struct loop_msg *msg)
{
	struct worker_job *job = container_of(msg, struct worker_job, msg);

	job->work(job);
	job->done(job);
}

void worker_init(struct worker *w, struct loop *loop)
{
	*w = (struct worker){ .loop = loop };
}

int worker_run(struct worker *w, struct worker_job *job)
{
	loop_msg_init(&job->msg, job_run);
	loop_post(w->loop, &job->msg);
	return 0;
}

void worker_fini(struct worker *w)
{
	assert(!w->running);
}
