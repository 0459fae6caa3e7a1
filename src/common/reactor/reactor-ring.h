/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a reactor, for the users of the ring: the reactor itself, and the storage
 * (store-uring.c and file/).  Thread of the reactor. */
#ifndef REACTOR_RING_H
#define REACTOR_RING_H

#include <liburing.h>

#include "loop-impl.h"
#include "reactor.h"
#include "spin.h"

struct reactor {
	struct reactor_part part;	/* first */
	struct loop loop;
	struct io_uring ring;
	bool enabled;			/* by the thread that runs the ring */
	char name[32];
	bool stopped;
	struct spin spin;		/* reactor_set_poll() */
	unsigned burst;			/* most completions of a pass since the thread was last
					 * idle */

	/* A timeout in the ring completes at the earliest deadline, so that a pass without a due
	 * timer reads no clock, and a sleep needs no bound. */
	struct reactor_op timeout, moved;
	uint64_t timeout_ms;		/* CLOCK_NEVER: the ring has none */
	struct __kernel_timespec timeout_at;	/* of the entry that waits for its submission */
	bool due;			/* run the timers in this pass */

	struct list ready;		/* struct reactor_poll: run ready() in this pass */
	struct list closed;		/* struct reactor_poll: run closed() in this pass */

	struct loop_watch inbox_watch;
	struct loop_msg stop_msg;
};

/* Make a ring for @name, which is disabled and restricted to the operations, flags and
 * registrations of the server.  0, or -errno, which is logged.  Any thread. */
int reactor_ring_init(const char *name, struct io_uring *ring, unsigned entries);

/* Make the calling thread the only submitter of the ring.  Idempotent.  0 or -errno. */
int reactor_enable(struct reactor *r);

/* Return an empty submission entry whose completion runs @op->done.  The caller fills the entry
 * with an io_uring_prep_*() before the next call for this ring; the end of the pass submits the
 * entry.  Never NULL: a full queue is submitted first. */
struct io_uring_sqe *reactor_ring_sqe(struct reactor *r, struct reactor_op *op);

/* Look at the result *@res of @op, of the storage.  True: the kernel had no thread to begin @op
 * with, and @op->done() runs later, with -ETIME, of which this call makes -EAGAIN.  The kernel says
 * -ECANCELED (Linux 6.18) if a ring without a worker meets a limit of threads. */
bool reactor_ring_later(struct reactor *r, struct reactor_op *op, int *res);

/* Run ready() of each watch on reactor.ready. */
void reactor_watch_run_ready(struct reactor *r);
/* Run closed() of each watch on reactor.closed. */
void reactor_watch_run_closed(struct reactor *r);

#endif
