/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of a loop, for its implementations: tasks, timers and the inbox, which every loop has.
 * An implementation embeds a struct loop, brings loop_watch(), loop_watch_events() and
 * loop_unwatch(), and calls the functions below in its passes, on its thread.  Who has no loop and
 * is polled may embed one for its inbox alone (src/common/fabric/tcp/tcp-aside.c). */
#ifndef BASE_LOOP_IMPL_H
#define BASE_LOOP_IMPL_H

#include "clock.h"
#include "loop.h"

struct loop {
	struct list tasks;		/* struct loop_task: for this pass */
	struct list next_tasks;		/* struct loop_task: for the next pass */
	struct list sleep_tasks;	/* struct loop_task: for the next sleep */
	struct list timers;		/* struct loop_timer, earliest first */
	uint64_t pass;			/* loop_pass() */
	int eventfd;			/* readable when messages wait */
	_Atomic(struct loop_msg *) pushed;	/* newest first; any thread */
	struct loop_msg *arrived;	/* oldest first, all older than @pushed */
};

/* Initialise @loop.  Returns 0 or -errno. */
int loop_init(struct loop *loop);
/* Release @loop, which has no sender any more; messages that did not run are dropped. */
void loop_fini(struct loop *loop);

/* A pass of @loop begins on this thread: loop_check_thread() of another loop fails until
 * loop_leave(). */
void loop_enter(struct loop *loop);
/* The pass ends. */
void loop_leave(void);
/* Assert that this thread runs no pass of a loop other than @loop. */
void loop_check_thread(const struct loop *loop);

/* Run the deferred tasks.  A task that another task defers belongs to the same pass, up to a limit:
 * tasks which go on deferring each other do not starve the rest. */
void loop_run_tasks(struct loop *loop);
/* Run the tasks that are due right before the loop sleeps. */
void loop_run_sleep_tasks(struct loop *loop);
/* Run the timers that are due at @now_ms, in order. */
void loop_run_timers(struct loop *loop, uint64_t now_ms);
/* The earliest deadline, or CLOCK_NEVER. */
static inline uint64_t loop_deadline(const struct loop *loop)
{
	if (list_empty(&loop->timers))
		return CLOCK_NEVER;
	return list_entry(loop->timers.next, struct loop_timer, link)->at_ms;
}

/* Run the messages that are posted, and return their number.  Messages posted meanwhile run in the
 * next call. */
unsigned loop_run_inbox(struct loop *loop);
/* True if no message waits.  Loop's thread. */
bool loop_inbox_empty(const struct loop *loop);

#endif
