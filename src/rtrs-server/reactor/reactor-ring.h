/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a reactor, for those who put something into it: the reactor itself, and the storage
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
	bool enabled;			/* the ring belongs to the thread that enabled it */
	char name[32];
	bool stopped;
	struct spin spin;		/* reactor_set_poll() */
	unsigned burst;			/* the most completions of a pass since it had nothing to
					 * do */

	struct list ready;		/* struct reactor_poll: run ready() in this pass */
	struct list closed;		/* struct reactor_poll: run closed() in this pass */

	struct loop_watch inbox_watch;
	struct loop_msg stop_msg;
};

/* Make the calling thread the one that submits.  Idempotent.  0 or -errno. */
int reactor_enable(struct reactor *r);

/* An empty submission entry whose completion runs @op->done.  Never NULL: a full queue is submitted
 * first.  It leaves with the end of the pass; to be filled by an io_uring_prep_*() before anything
 * else is asked of the ring. */
struct io_uring_sqe *reactor_sqe(struct reactor *r, struct reactor_op *op);

#endif
