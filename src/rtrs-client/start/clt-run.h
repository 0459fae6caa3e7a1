/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because rtrs-bench and tests have it without a front end.
 *
 * A session with loops and threads of its own, from start to end.  Call from a single thread; all
 * block, except clt_run_thread(), clt_run_more() and clt_run_session(). */
#ifndef CLT_RUN_H
#define CLT_RUN_H

#include "client.h"

#define CLT_RUN_LOOPS 64

struct clt_run {
	struct loop *loop;		/* the service loop; NULL: nothing runs */
	struct loop *loops[CLT_RUN_LOOPS];	/* [nloops], 0 is @loop */
	unsigned nloops;
	struct client clt;
};

/* Start the thread @name with the loop.  0 or -errno. */
int clt_run_thread(struct clt_run *run, const char *name);
/* Start @n threads more, named @name, with loops for IO (clt-loop.h): CLT_RUN_LOOPS loops at most.
 * 0, or -errno: then no thread is left. */
int clt_run_more(struct clt_run *run, const char *name, unsigned n);
/* Start the session of @conf on the loops; conf->loops is not looked at.  0, or as client_init():
 * then the threads have ended. */
int clt_run_session(struct clt_run *run, const struct clt_sess_conf *conf);
/* Wait for the session's first attempt.  0, or -errno with the cause in @why. */
int clt_run_wait_up(struct clt_run *run, char *why, size_t len);
/* Disconnect.  The client is CLOSED then, and not freed yet, because other threads may still wait
 * for the client. */
void clt_run_close(struct clt_run *run);
/* End the threads, and free the loops and the client, which is closed. */
void clt_run_fini(struct clt_run *run);

#endif
