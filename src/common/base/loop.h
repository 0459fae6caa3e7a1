/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop: one thread to which everything comes that is not asked for: work put off, deadlines,
 * descriptors that are ready, messages of other threads.  Objects of one loop need no lock.
 *
 * All of it is embedded in its owners; only loop_watch() allocates.  Unless a function says "any
 * thread" it is called on the loop's own thread, which means inside one of the functions below, or
 * before that thread runs.  None of them runs inside a call of this header.
 *
 * Implementations: loop-poll.h (poll(2)), src/rtrs-server/reactor/reactor.h (io_uring) and
 * tests/sim/sim-loop.h (virtual time).  The implementations share loop.c; their headers say how a
 * loop is made and ended. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct loop;

/* ---- work put off ---- */

struct loop_task {
	struct list link;
	void (*fn)(struct loop_task *task);
};

void loop_task_init(struct loop_task *task, void (*fn)(struct loop_task *task));
/* @task runs once, at the end of the current pass.  A task that waits already, for this or for a
 * sleep, is not queued twice. */
void loop_defer(struct loop *loop, struct loop_task *task);
/* @task runs once, when nothing else is left to do, right before the thread would sleep.  If the
 * task makes work the thread does not sleep. */
void loop_before_sleep(struct loop *loop, struct loop_task *task);
/* Take @task back if it waits. */
void loop_undefer(struct loop_task *task);

/* ---- deadlines ---- */

struct loop_timer {
	struct list link;
	uint64_t at_ms;
	void (*fn)(struct loop_timer *timer);
};

void loop_timer_init(struct loop_timer *timer, void (*fn)(struct loop_timer *timer));
/* (Re)arm for clock_now_ms() time @at_ms.  Timers of the same time run in the order of setting. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ms);
/* Idempotent; nothing is left in flight. */
void loop_timer_cancel(struct loop_timer *timer);

/* ---- messages of other threads ---- */

/* Belongs to the loop from loop_post() until its function runs.  All zero but @fn is a message. */
struct loop_msg {
	struct loop_msg *next;
	void (*fn)(struct loop_msg *msg);
	_Atomic(bool) posted;
};

void loop_msg_init(struct loop_msg *msg, void (*fn)(struct loop_msg *msg));
/* Run @msg->fn on the loop's thread.  Any thread, the loop's too.  A message that waits already
 * stays as it is; its function then sees what the second sender wrote before.
 * Lock-free; the loop is woken once per batch.  Messages of one sender run in order. */
void loop_post(struct loop *loop, struct loop_msg *msg);
/* Take @msg back if it is posted and does not run yet.  The loop's thread. */
void loop_unpost(struct loop *loop, struct loop_msg *msg);

/* ---- descriptors ---- */

/* A descriptor watched for readiness, with level semantics: @ready runs as long as it returns true
 * ("there may be more"), and otherwise when one of @events holds anew.  So @ready takes what there
 * is, or returns true; and may find nothing, because somebody took it before.  An end and an error
 * (POLLHUP, POLLERR) are told whatever @events.  @ready also runs when the kernel does not poll the
 * descriptor now, which is tried again until unwatched. */
struct loop_watch {
	int fd;
	short events;			/* POLLIN, POLLOUT, both or none; or POLLRDHUP alone */
	bool (*ready)(struct loop_watch *watch);
	void (*closed)(struct loop_watch *watch);	/* may be NULL; see loop_unwatch() */

	struct loop *loop;		/* NULL while it is not watched */
	/* the loop's own */
	struct list link;
	bool more;
	void *impl;
};

/* @watch->fd, events, ready and closed are set; the rest is zero, or left by an earlier watch.  0
 * or -errno. */
int loop_watch(struct loop *loop, struct loop_watch *watch);
/* Change POLLIN and POLLOUT.  Cheap when nothing changes; an assignment while it is not watched. */
void loop_watch_events(struct loop_watch *watch, short events);
/* Stop watching: ready() does not run any more.  Idempotent.  With closed() the loop refers to
 * @watch and its descriptor until that has run, once: close and free there, not before.  Without
 * closed() both are the caller's at once (the kernel may keep the file open a moment longer). */
void loop_unwatch(struct loop_watch *watch);

#endif
