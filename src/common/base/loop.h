/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop is a thread that runs callbacks for all events that arrive unasked: deferred tasks,
 * deadlines, ready descriptors, messages of other threads.  Objects of a single loop need no lock.
 *
 * Every struct is embedded in its owner; only loop_watch() allocates.  Unless a function says "any
 * thread", call it on the loop's own thread: inside a callback of this header, or before the thread
 * runs.  No callback runs inside a call of this header.
 *
 * Implementations: loop-poll.c (epoll(7)), src/common/reactor/reactor.h (io_uring) and
 * tests/sim/sim-loop.h (virtual time).  The implementations share loop.c; their headers say how to
 * create and how to end a loop. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct loop;

/* The loop whose pass runs on this thread; NULL: the thread is no loop's.  Any thread. */
struct loop *loop_running(void);

/* ---- work put off ---- */

struct loop_task {
	struct list link;
	void (*fn)(struct loop_task *task);
};

/* Initialise @task, which runs @fn. */
void loop_task_init(struct loop_task *task, void (*fn)(struct loop_task *task));
/* Run @task once, at the end of the current pass.  A task that waits already, for the end of the
 * pass or for a sleep, is not queued twice. */
void loop_defer(struct loop *loop, struct loop_task *task);
/* Run @task once, at the end of the next pass, which comes without a sleep.  Otherwise as
 * loop_defer().  Inside a deferred task. */
void loop_defer_next(struct loop *loop, struct loop_task *task);
/* Run @task once, when no other work is left, right before the thread would sleep.  If the task
 * makes work, the thread does not sleep. */
void loop_before_sleep(struct loop *loop, struct loop_task *task);
/* Take @task back if @task waits. */
void loop_undefer(struct loop_task *task);
/* The number of the pass: it grows when the deferred tasks have run. */
uint64_t loop_pass(const struct loop *loop);

/* ---- deadlines ---- */

struct loop_timer {
	struct list link;
	uint64_t at_ms;
	void (*fn)(struct loop_timer *timer);
};

/* Initialise @timer, which runs @fn. */
void loop_timer_init(struct loop_timer *timer, void (*fn)(struct loop_timer *timer));
/* (Re)arm for clock_now_ms() time @at_ms.  Timers of the same time run in the order of setting. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ms);
/* Disarm @timer; its function does not run any more.  Idempotent. */
void loop_timer_cancel(struct loop_timer *timer);
/* True if @timer is armed; false inside its function. */
static inline bool loop_timer_armed(const struct loop_timer *timer)
{
	return !list_empty(&timer->link);
}

/* ---- messages of other threads ---- */

/* A message belongs to the loop from loop_post() until its function runs.  A zeroed struct with @fn
 * set is a message, too. */
struct loop_msg {
	struct loop_msg *next;
	void (*fn)(struct loop_msg *msg);
	_Atomic(bool) posted;
};

/* Initialise @msg, which runs @fn. */
void loop_msg_init(struct loop_msg *msg, void (*fn)(struct loop_msg *msg));
/* Run @msg->fn on the loop's thread.  Any thread, the loop's too.  A message that is posted already
 * stays in its place; its function then sees the second sender's earlier writes.  Lock-free; the
 * loop is woken once per batch.  Messages of a single sender run in order. */
void loop_post(struct loop *loop, struct loop_msg *msg);
/* Take @msg back if @msg is posted and does not run yet.  The loop's thread. */
void loop_unpost(struct loop *loop, struct loop_msg *msg);

/* ---- descriptors ---- */

/* A loop_watch watches a descriptor for readiness, with level semantics.  The loop calls @ready
 * again as long as @ready returns true ("there may be more"), and after false when an event of
 * @events holds again, or holds and is wanted again.  So @ready takes all that is ready, or returns
 * true, or wants the event no more.  @ready may find nothing, because another caller took the data
 * before.
 *
 * Hang-up and error (POLLHUP, POLLERR) call @ready whatever @events holds.  @ready also runs when
 * the kernel cannot poll the descriptor now; the loop tries again until the watch ends. */
struct loop_watch {
	int fd;
	short events;			/* POLLIN, POLLOUT, both or none; or POLLRDHUP alone */
	bool (*ready)(struct loop_watch *watch);
	void (*closed)(struct loop_watch *watch);	/* may be NULL; see loop_unwatch() */

	struct loop *loop;		/* NULL while not watched */
	/* the loop's own */
	struct list link, change;
	short asked;			/* events that the kernel knows of */
	int asked_fd;			/* fd, or a copy of it while another watch has fd */
	bool more;
	void *impl;
};

/* Watch @watch->fd, which may have other watches.  Before: fd, events, ready and closed are set;
 * the rest is zero, or left by an earlier watch.  Returns 0 or -errno. */
int loop_watch(struct loop *loop, struct loop_watch *watch);
/* Change @watch->events.  Cheap when nothing changes; a plain assignment while not watched. */
void loop_watch_events(struct loop_watch *watch, short events);
/* Stop watching: ready() does not run any more.  Idempotent.  With closed() the loop refers to
 * @watch and its descriptor until the single call of closed(): close and free there, not before.
 * Without closed() @watch and descriptor are the caller's at once (the kernel may keep the file
 * open a moment longer). */
void loop_unwatch(struct loop_watch *watch);

/* ---- calls of other threads ----
 *
 * A thread that is no loop's has a loop run a function, and waits for the end of what the function
 * began. */

/* Lives until loop_call_end(). */
struct loop_call {
	void *arg;			/* the caller's */
	int rc;				/* 0 at the beginning */

	/* private */
	struct loop_msg msg;
	void (*fn)(struct loop_call *call);
	sem_t ended;
};

/* Run @fn on the thread of @loop, behind what this thread has posted there.  Blocks until
 * loop_call_end(), and returns the call's rc.  @loop runs, on another thread. */
int loop_call(struct loop *loop, void (*fn)(struct loop_call *call), void *arg);
/* End @call, a struct loop_call: inside of its function or later, once.  What this thread wrote
 * before, the caller sees.  Any thread. */
void loop_call_end(void *call);

/* ---- a loop around epoll(7), on a thread of its own: loop-poll.c ---- */

/* Start the thread @name, which runs the new loop @out.  Returns 0 or -errno. */
int loop_poll_create(const char *name, struct loop **out);
/* End the thread when the messages posted before have run, and free the loop.  Tasks and timers
 * that still wait are dropped.  Not on the loop's thread. */
void loop_poll_destroy(struct loop *loop);

#endif
