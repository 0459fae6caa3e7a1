/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of a program with all IO on loops, for the simulation. */
#include <assert.h>

#include "clt-io.h"
#include "clt-loop.h"
#include "sim-core.h"
#include "sim-wait.h"

/* In place of turns, which would go on from one seed to the next. */
static unsigned loops_hint(const struct clt_io *io)
{
	unsigned i = 0;

	while (io->loops[i] != loop_running())
		assert(++i < io->nloops);
	return sim_rand(1000) * io->nloops + i;
}

const struct clt_wait_ops *sim_wait_loops(void)
{
	static struct clt_wait_ops ops;

	ops = clt_loop_wait;
	ops.event = sim_wait_event;
	ops.hint = loops_hint;
	return &ops;
}
