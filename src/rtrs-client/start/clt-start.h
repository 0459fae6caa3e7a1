/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of a front end: tried out while a failure is still an exit status (clt_probe()).
 * After a daemon has forked, the lasting session is opened.  Main thread, unless a function says
 * otherwise. */
#ifndef CLT_START_H
#define CLT_START_H

#include <semaphore.h>
#include <stdatomic.h>

#include "client.h"
#include "clt-conf.h"
#include "clt-ctl.h"
#include "clt-reload.h"

/* ---- a session with loops and threads of its own ---- */

/* From start to end, without a front end.  Call from a single thread; all block, except
 * clt_run_thread(), clt_run_more() and clt_run_session(). */

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

/* ---- the session of a front end ---- */

/* The thread that listens for the end of the front end's process. */
enum clt_start_watch {
	CLT_WATCH_NONE,
	CLT_WATCH_RUNS,
	CLT_WATCH_NAPS,			/* in clt_front.nap() */
	CLT_WATCH_LEFT,			/* as above, and the session ends without the thread */
};

struct clt_start {
	struct clt_conf *conf;
	struct frwr_lessons lessons;	/* learned by the probe, known to the lasting session */
	bool without;			/* the probe was answered by no server, or for no export */
	/* of the probe first, then of the lasting session */
	struct clt_run run;
	struct clt_reload reload;	/* of the lasting session's keys */
	struct clt_ctl *ctl;		/* NULL: none; so @metrics */
	struct clt_metrics *metrics;
	pthread_t watch;
	sem_t watch_over;		/* @watch ends, and was not left */
	_Atomic(enum clt_start_watch) watched;
	/* Guards the start of the lasting session.  While no session runs, the holder may try to
	 * start the session.  A thread that has seen the session under the lock may use the session
	 * until clt_start_end(). */
	pthread_mutex_t lock;
};

/* Initialize @start without a session.  @conf and conf->front outlive @start. */
void clt_start_init(struct clt_start *start, struct clt_conf *conf);
/* Start the lasting session, without waiting for the server.  0, or -errno with @err:
 * clt_start_admit() tries again. */
int clt_start_session(struct clt_start *start, char err[CLT_FRONT_ERR]);
/* Can another client have its descriptors, when those of the reserve (process.h) and those of the
 * session's paths that are not up stay free? The session runs.  Any thread. */
bool clt_start_has_room(struct clt_start *start);
/* May a client that has come stay? Starts the session, if no session runs.  Any thread.  0, or
 * -errno with @err: the session cannot start.  -EMFILE: clt_start_has_room() says no. */
int clt_start_admit(struct clt_start *start, char err[CLT_FRONT_ERR]);
/* Close the session, the metrics and the control socket; does nothing without a session. */
void clt_start_end(struct clt_start *start);

/* Tries the session of a front end out.  A mistake in the server's address, the export's name or
 * control= is found here, while a mistake is still an exit status. */

/* The time for RDMA to reach the server, with transport=auto.  RDMA itself needs a minute to give
 * up on a silent address; tcp is tried sooner. */
#define CLT_PROBE_RDMA_MS 5000

/* Connect, open the export in the way of clients, if an export is configured, disconnect, and bind
 * the control socket.  With transport=auto this call chooses for all paths without a named
 * transport: "rdma" if any such path works over "rdma", else "tcp".  The log says why.  Main
 * thread, before a daemon forks; blocks.  0, or -errno with the reason in @err; -EMFILE, too, if
 * descriptors suffice for the session and not for a client. */
int clt_probe(struct clt_start *start, char err[CLT_FRONT_ERR]);

/* Start a session, whose name ends with @suffix, that is over when it is lost, and wait until it is
 * up, with what the probe knows of transports and devices.  While the server is away, or has too
 * many paths in set-up, this call tries again for connect-timeout; without one, for 30 s because of
 * set-ups alone.  0, or -errno with @err and no session.  clt_start_end() ends it.  Main thread;
 * blocks. */
int clt_probe_connect(struct clt_start *start, const char *suffix, char err[CLT_FRONT_ERR]);

/* Functions for both the probe and the lasting session. */

/* Start a session of @conf, whose name ends with @suffix, and wait for nothing.  @once, @setup_ms:
 * struct clt_sess_conf.  0, or -errno with @err. */
int clt_start_run(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
		  bool once, unsigned setup_ms, char err[CLT_FRONT_ERR]);
/* The number of connections of the session. */
unsigned clt_start_cons(struct clt_start *start);

#endif
