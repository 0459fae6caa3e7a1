/* SPDX-License-Identifier: BSD-3-Clause */
/* IO on the loop of the session: dev_io_start() with a function to schedule a step, and
 * clt_op_step() on the loop's thread.  No thread waits for an answer. */
#ifndef CLT_LOOP_H
#define CLT_LOOP_H

#include "clt-io.h"

extern const struct clt_wait_ops clt_loop_wait;

#endif
