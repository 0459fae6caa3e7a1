/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with a loop and a thread of its own, from start to end.  Call from a single thread; all
 * block, except clt_run_thread() and clt_run_session(). */
#ifndef CLT_RUN_H
#define CLT_RUN_H

#include "client.h"

struct clt_run {
	struct loop *loop;		/* NULL: nothing runs */
	struct client clt;
};

/* Start the thread @name with the loop.  0 or -errno. */
int clt_run_thread(struct clt_run *run, const char *name);
/* Start the session of @conf on the loop.  0, or as client_init(): then the thread has ended. */
int clt_run_session(struct clt_run *run, const struct clt_sess_conf *conf);
/* Wait for the session's first attempt.  0, or -errno with the cause in @why. */
int clt_run_wait_up(struct clt_run *run, char *why, size_t len);
/* Disconnect.  The client is CLOSED then, and not freed yet, because other threads may still wait
 * for the client. */
void clt_run_close(struct clt_run *run);
/* End the thread, and free the loop and the client, which is closed. */
void clt_run_fini(struct clt_run *run);

#endif
