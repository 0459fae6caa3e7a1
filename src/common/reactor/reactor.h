/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's loop (loop.h): a thread with one io_uring through which all events come, storage
 * completions included (doc/decisions.md D3).
 *
 * A pass of the loop has these steps:
 *   - wait, and run the completions: handlers may start IO, post messages, defer work;
 *   - run deferred work: here each connection posts its replies once;
 *   - submit all new IO with one io_uring_enter;
 *   - get ready to sleep, if no work is left.
 * Every function is called on the reactor's own thread unless the comment of the function names
 * another.  The simulation implements this header with virtual time (tests/sim/sim-loop.c). */
#ifndef REACTOR_H
#define REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

struct reactor;
struct export_ring;

/* An operation in a reactor's ring: the user_data of an entry.  Embedded in the owner, which frees
 * the operation after done() has run for the last time. */
struct reactor_op {
	/* Runs on the reactor's thread, between submissions.  @res and @flags are those of the
	 * CQE: @res is a negative errno on failure. */
	void (*done)(struct reactor_op *op, int res, unsigned flags);
};

/* Create a reactor whose ring is disabled until reactor_run().  Any thread (before the threads
 * run: the main thread).  0 or -errno; the cause of a failure has been logged. */
int reactor_create(const char *name, unsigned ring_entries, struct reactor **out);
/* Free @r, which may be NULL, and close the ring.  The thread of @r has ended, and the storage is
 * detached. */
void reactor_destroy(struct reactor *r);
/* Busy-poll for up to @us microseconds before the thread sleeps (spin.h), if each pass since the
 * thread was last idle had few completions.  Call before reactor_run().  The default is 0:
 * sleep at once. */
void reactor_set_poll(struct reactor *r, unsigned us);
/* Run the loop on the calling thread until reactor_stop().  0 or -errno.  The same thread may run
 * the loop again. */
int reactor_run(struct reactor *r);
/* End reactor_run().  Any thread. */
void reactor_stop(struct reactor *r);
/* The name given to reactor_create(), for the log. */
const char *reactor_name(const struct reactor *r);

/* The first member of each struct reactor: the field for other parts of the server. */
struct reactor_part {
	struct export_ring *storage;	/* NULL: the storage is not attached */
};

/* The storage's state on @r, or NULL. */
static inline struct export_ring *reactor_storage(const struct reactor *r)
{
	return ((const struct reactor_part *)(const void *)r)->storage;
}

/* Attach @storage to @r, or detach with NULL.  The storage alone calls this. */
static inline void reactor_set_storage(struct reactor *r, struct export_ring *storage)
{
	((struct reactor_part *)(void *)r)->storage = storage;
}

/* The loop of @r: tasks, timers, messages and watches of its thread. */
struct loop *reactor_loop(struct reactor *r);

#endif
