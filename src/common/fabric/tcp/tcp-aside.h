/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread for the steps of TLS's handshakes: a step costs up to a millisecond of a processor, and
 * the cm's thread is the control thread of a program.
 *
 * A connection in its set-up lends its session of TLS and its socket for a step at a time, and has
 * them back when the cm's thread takes the result.  Meanwhile the cm neither watches nor uses
 * either.  A connection that goes while its step runs leaves both to the thread, which frees them
 * behind the step.  Steps are dealt out by host (deal.h).  They are at most as many as connections
 * in their set-up, of which the unproven (unproven.h) are bounded.
 *
 * worker.h does not fit: its jobs end as messages to a loop, and a cm is a descriptor that any kind
 * of loop waits on.  So the results are a source of the cm's epoll, an eventfd.
 *
 * The thread begins with the first step, waits for no peer (the sockets do not block), and takes no
 * signal.  Calls are under cm->lock, but for create and destroy. */
#ifndef TCP_ASIDE_H
#define TCP_ASIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "deal.h"
#include "list.h"
#include "tcp-conn.h"
#include "tcp-tls.h"

enum tcp_step_state {
	STEP_HOME,			/* the connection has its session and its socket */
	STEP_WAITS,			/* in tcp_aside.waiting */
	STEP_RUNS,			/* the thread has both */
	STEP_DONE,			/* in tcp_aside.done, with a result */
};

/* The steps of a connection, one at a time.  The fields behind @state belong to the thread while
 * the step runs. */
struct tcp_step {
	struct deal_item turn;		/* its link is also that of tcp_aside.done */
	struct tcp_conn *conn;		/* NULL: it went while the step ran */
	enum tcp_step_state state;
	struct tcp_tls *tls;
	int fd;				/* closed by the thread, if @conn went */
	/* the result, as of tcp_tls_handshake() */
	int rc;
	uint32_t events;
	char why[FAB_TLS_WHY_LEN];
};

struct tcp_aside {
	struct tcp_source source;	/* the results */
	int fd;				/* eventfd, readable while @done has steps; -1: no thread */
	pthread_t thread;
	pthread_mutex_t lock;		/* of what follows, and of steps that are not at home;
					 * innermost, and no step runs under it */
	pthread_cond_t changed;
	struct deal waiting;		/* tcp_step.turn */
	struct list done;		/* tcp_step.turn.link */
	bool stop;
};

/* Make @a, without a thread. */
void tcp_aside_init(struct tcp_aside *a);
/* End the thread, behind the step that runs.  No step of a connection is left. */
void tcp_aside_fini(struct tcp_aside *a);

/* Make the next step of @c, whose session is at home, and whose socket is watched by nobody.  The
 * first step begins the thread, with @ready as the source of @epoll for results.  0 or -errno. */
int tcp_aside_lend(struct tcp_aside *a, struct tcp_conn *c, int epoll,
		   void (*ready)(struct tcp_source *src, uint32_t events));
/* Take a connection whose step is done, and which has its session and socket back; the result is in
 * c->step.  NULL: none. */
struct tcp_conn *tcp_aside_take(struct tcp_aside *a);
/* End the steps of @c.  One that waits or is done comes home.  One that runs keeps the session and
 * the socket: then @c has neither any more. */
void tcp_aside_leave(struct tcp_aside *a, struct tcp_conn *c);

#endif
