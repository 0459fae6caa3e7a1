/* SPDX-License-Identifier: BSD-3-Clause */
/* For those who implement a loop: tasks, timers and the inbox, which all have.  An implementation
 * embeds a struct loop, brings loop_watch() and its kin, and calls the functions below in its
 * passes, on its thread. */
#ifndef BASE_LOOP_IMPL_H
#define BASE_LOOP_IMPL_H

#include "clock.h"
#include "loop.h"

struct loop {
	struct list tasks;		/* struct loop_task: in this pass */
	struct list sleep_tasks;	/* likewise: before the thread sleeps */
	struct list timers;		/* struct loop_timer, earliest first */
	int eventfd;			/* readable when there are messages */
	_Atomic(struct loop_msg *) pushed;	/* newest first; any thread */
	struct loop_msg *arrived;	/* oldest first, older than what is pushed */
};

/* 0 or -errno. */
int loop_init(struct loop *loop);
/* No sender is left; messages that did not run are forgotten. */
void loop_fini(struct loop *loop);

/* Around each pass: a call on behalf of another loop meanwhile is a bug, and asserted. */
void loop_enter(const struct loop *loop);
void loop_leave(void);
void loop_check_thread(const struct loop *loop);

/* Tasks that a task defers belong to the same pass, up to a limit: tasks which go on deferring
 * each other do not starve the rest. */
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

/* Run the messages that are posted; returns how many.  Later ones run in the next call. */
unsigned loop_run_inbox(struct loop *loop);
/* Does no message wait? Loop's thread. */
bool loop_inbox_empty(const struct loop *loop);

#endif
