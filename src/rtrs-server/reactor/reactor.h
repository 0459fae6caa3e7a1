/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's loop (loop.h): a thread with one io_uring through which everything comes, storage
 * completions, too (doc/decisions.md D3).
 *
 * One pass of the loop: wait; run what completed (handlers may start IO, post messages, defer
 * work); run deferred work (this is where each connection posts its replies once); submit all new
 * IO with one io_uring_enter; get ready to sleep when there is nothing else to do.  Unless a
 * function says otherwise it is called on the reactor's own thread.  The simulation implements this
 * header with virtual time (tests/sim/sim-loop.c). */
#ifndef REACTOR_H
#define REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

struct reactor;
struct export_ring;

/* One operation in a reactor's ring: its user_data.  Embedded in its owner, which is not freed
 * before done() has run for the last time. */
struct reactor_op {
	/* On the reactor's thread, between submissions.  @res and @flags are those of the CQE: @res
	 * negative errno on failure. */
	void (*done)(struct reactor_op *op, int res, unsigned flags);
};

/* Any thread (before the threads run: the main thread).  Why it failed has been logged. */
int reactor_create(const char *name, unsigned ring_entries, struct reactor **out);
void reactor_destroy(struct reactor *r);
/* Before the thread sleeps it looks for at most @us microseconds whether something completes
 * (spin.h), when it had one request or two to work on.  Before reactor_run(); 0, the default, is to
 * sleep at once. */
void reactor_set_poll(struct reactor *r, unsigned us);
/* Run the loop on the calling thread until reactor_stop(); returns 0 or -errno.  May be run again
 * by the same thread. */
int reactor_run(struct reactor *r);
/* Any thread. */
void reactor_stop(struct reactor *r);
const char *reactor_name(const struct reactor *r);

/* The first member of each struct reactor: what is kept for others. */
struct reactor_part {
	struct export_ring *storage;	/* the storage's own; NULL: it is not attached */
};

static inline struct export_ring *reactor_storage(const struct reactor *r)
{
	return ((const struct reactor_part *)(const void *)r)->storage;
}

static inline void reactor_set_storage(struct reactor *r, struct export_ring *storage)
{
	((struct reactor_part *)(void *)r)->storage = storage;
}

/* Tasks, timers, messages and watches of its thread. */
struct loop *reactor_loop(struct reactor *r);

#endif
