/* SPDX-License-Identifier: BSD-3-Clause */
/* What the simulation's reactor offers beyond reactor.h. */
#ifndef SIM_REACTOR_H
#define SIM_REACTOR_H

#include "reactor.h"

/* A completion of a storage operation: @fn runs on @r in a later pass.  @link is not on a list. */
struct sim_cqe {
	struct list link;
	void (*fn)(struct sim_cqe *cqe);
};

void sim_reactor_complete(struct reactor *r, struct sim_cqe *cqe);
/* Nothing to do now: no message, task, completion or closed watch waits. */
bool sim_reactor_idle(struct reactor *r);

#endif
