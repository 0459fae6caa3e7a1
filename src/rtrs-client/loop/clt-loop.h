/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because it is all that a program with loops of its own needs.
 *
 * IO on loops: dev_io_start() with a function to schedule a step, and clt_op_step() on the thread
 * of the loop that has started the operation.  No thread waits for an answer.
 *
 * LOOPS.  A session has one loop for IO or several (clt_sess_conf.loops); the service loop is one
 * of these.  Connection n of each path is led by loop (n - 1) % nloops; connection 0 is
 * the service loop's.  A loop starts operations on connections of its own.  So a request never
 * changes the thread: the loop that begins a request sends the request, receives the answer and
 * ends the operation.
 *
 * WHAT CROSSES THREADS.  A permit that another loop gave back, a path that came up, a range that
 * another loop left, and requests that came back from a path that was lost: a waiter is told of
 * these by a message to the waiter's loop (clt_waiter.home).  The poll role of a connection goes
 * to the service loop by messages, too: con_take() then returns false, and role_free() follows. */
#ifndef CLT_LOOP_H
#define CLT_LOOP_H

#include "clt-io.h"

extern const struct clt_wait_ops clt_loop_wait;

#endif
