/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns loops, their threads, and the client on the loops.  A failure leaves nothing behind. */
#include <config.h>

#include <assert.h>
#include <stdio.h>

#include "clt-run.h"
#include "loop.h"

int clt_run_thread(struct clt_run *run, const char *name)
{
	int r = loop_poll_create(name, &run->loop);

	if (r < 0)
		run->loop = NULL;
	run->loops[0] = run->loop;
	run->nloops = 1;
	return r;
}

static void end_threads(struct clt_run *run)
{
	while (run->nloops)
		loop_poll_destroy(run->loops[--run->nloops]);
	run->loop = NULL;
}

int clt_run_more(struct clt_run *run, const char *name, unsigned n)
{
	int r = 0;

	assert(run->nloops + n <= CLT_RUN_LOOPS);
	while (r == 0 && n--) {
		r = loop_poll_create(name, &run->loops[run->nloops]);
		if (r == 0)
			run->nloops++;
	}
	if (r < 0)
		end_threads(run);
	return r;
}

int clt_run_session(struct clt_run *run, const struct clt_sess_conf *conf)
{
	struct clt_sess_conf with_loops = *conf;
	int r;

	with_loops.loops = run->loops;
	with_loops.nloops = run->nloops;
	r = client_init(&run->clt, run->loop, &with_loops);
	if (r < 0)
		end_threads(run);
	return r;
}

int clt_run_wait_up(struct clt_run *run, char *why, size_t len)
{
	int r = client_wait_up(&run->clt);

	if (r < 0)
		snprintf(why, len, "%s", run->clt.cause);
	return r;
}

void clt_run_close(struct clt_run *run)
{
	client_close(&run->clt);
}

void clt_run_fini(struct clt_run *run)
{
	end_threads(run);
	client_fini(&run->clt);
}
