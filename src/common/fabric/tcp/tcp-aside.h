/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread for the steps of TLS's handshakes: a step costs up to a millisecond of a processor, and
 * the cm's thread is the control thread of a program.
 *
 * A connection in its set-up lends its session of TLS and its socket for a step at a time, and has
 * them back when the cm's thread takes the result.  Meanwhile the cm neither watches nor uses
 * either.  A connection that goes while its step runs leaves both to the step, which the cm's
 * thread frees when it is done.  Steps are dealt out by host.  They are at most as many as
 * connections in their set-up, of which the unproven (unproven.h) are bounded.
 *
 * A step is a job of a worker (worker.h), whose jobs end as messages to a loop.  A cm has a loop's
 * inbox alone (loop-impl.h), and runs it as a source of its epoll.
 *
 * The thread begins with the first step, waits for no peer (the sockets do not block), and takes no
 * signal.  Calls are under cm->lock, but for init and fini. */
#ifndef TCP_ASIDE_H
#define TCP_ASIDE_H

#include <stdbool.h>

#include "loop-impl.h"
#include "tcp-conn.h"
#include "tcp-tls.h"
#include "worker.h"

/* The steps of a connection, one at a time.  The fields behind @away belong to the thread while
 * the step is away. */
struct tcp_step {
	struct worker_job job;
	/* The step of @c is done: @c has its session and socket back, and the result is in
	 * c->step. */
	void (*done)(struct tcp_conn *c);
	struct tcp_conn *conn;		/* NULL: it went while the step ran */
	bool away;			/* waits, runs, or has a result that was not taken */
	struct tcp_tls *tls;
	int fd;				/* closed behind the step, if @conn went */
	/* the result, as of tcp_tls_handshake() */
	int rc;
	uint32_t events;
	char why[FAB_TLS_WHY_LEN];
};

struct tcp_aside {
	struct tcp_source source;	/* the inbox */
	struct loop inbox;		/* of results */
	struct worker worker;
	bool begun;			/* the inbox and the worker are there */
};

/* Make @a, without a thread. */
void tcp_aside_init(struct tcp_aside *a);
/* End the thread, behind the step that runs.  No step of a connection is left. */
void tcp_aside_fini(struct tcp_aside *a);

/* Make the next step of @c, whose session is at home, and whose socket is watched by nobody; @done
 * follows.  @epoll, of the cm, has the results as a source from the first step on.  0 or -errno. */
int tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
		   void (*done)(struct tcp_conn *c));
/* End the steps of @c.  One that has not begun comes home.  One that has keeps the session and the
 * socket: then @c has neither any more. */
void tcp_aside_leave(struct tcp_aside *a, struct tcp_conn *c);

#endif
