/* SPDX-License-Identifier: BSD-3-Clause */
/* A call: a thread that is no loop's has a loop run a function, and waits for the end of what the
 * function began. */
#ifndef BASE_LOOP_CALL_H
#define BASE_LOOP_CALL_H

#include <semaphore.h>

#include "loop.h"

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

#endif
