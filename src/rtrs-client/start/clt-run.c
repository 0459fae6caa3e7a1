/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a loop, the thread of the loop, and the client on the loop.  A failure leaves nothing
 * behind. */
#include <config.h>

#include <stdio.h>

#include "clt-run.h"
#include "loop-poll.h"

int clt_run_thread(struct clt_run *run, const char *name)
{
	int r = loop_poll_create(name, &run->loop);

	if (r < 0)
		run->loop = NULL;
	return r;
}

int clt_run_session(struct clt_run *run, const struct clt_sess_conf *conf)
{
	int r = client_init(&run->clt, run->loop, conf);

	if (r < 0) {
		loop_poll_destroy(run->loop);
		run->loop = NULL;
	}
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
	loop_poll_destroy(run->loop);
	run->loop = NULL;
	client_fini(&run->clt);
}
