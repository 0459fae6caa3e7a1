/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation in a reactor's ring: its user_data.  Embedded in its owner, which is not freed
 * before done() has run for the last time. */
#ifndef REACTOR_OP_H
#define REACTOR_OP_H

struct reactor_op {
	/* On the reactor's thread, between submissions.  @res and @flags are those of the CQE: @res
	 * negative errno on failure. */
	void (*done)(struct reactor_op *op, int res, unsigned flags);
};

#endif
