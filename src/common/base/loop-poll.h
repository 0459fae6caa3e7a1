/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop (loop.h) around epoll(7), on a thread of its own or on the thread of its caller. */
#ifndef BASE_LOOP_POLL_H
#define BASE_LOOP_POLL_H

#include <poll.h>

#include "loop.h"

/* Start the thread @name, which runs the new loop @out.  NULL: no thread, and the caller runs the
 * loop by loop_poll_turn().  Returns 0 or -errno. */
int loop_poll_create(const char *name, struct loop **out);
/* End the thread when the messages posted before have run, and free the loop.  Tasks and timers
 * that still wait are dropped.  Not on the loop's thread. */
void loop_poll_destroy(struct loop *loop);

/* Run a pass of @loop, which has no thread: wait for work of the loop or for one of the @n @fds,
 * at most @ms, -1: for ever, and run the work.  @fds has room for one more.  Returns as poll(2);
 * 0 also if a timer or a task was due.  For programs of tests, which poll by themselves. */
int loop_poll_turn(struct loop *loop, struct pollfd *fds, unsigned n, int ms);

#endif
