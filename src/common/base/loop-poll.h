/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop (loop.h) around epoll(7), on a thread of its own. */
#ifndef BASE_LOOP_POLL_H
#define BASE_LOOP_POLL_H

#include "loop.h"

/* Start the thread @name, which runs the new loop @out.  Returns 0 or -errno. */
int loop_poll_create(const char *name, struct loop **out);
/* End the thread when the messages posted before have run, and free the loop.  Tasks and timers
 * that still wait are dropped.  Not on the loop's thread. */
void loop_poll_destroy(struct loop *loop);

#endif
