/* SPDX-License-Identifier: BSD-3-Clause */
/* IO on the caller's own loop: dev_io_start() with a function that schedules a step, and
 * clt_op_step() on the thread of the loop that the session was created on.  No thread waits for an
 * answer. */
#ifndef CLT_LOOP_H
#define CLT_LOOP_H

#include "clt-io.h"

extern const struct clt_wait_ops clt_loop_wait;

#endif
