/* SPDX-License-Identifier: BSD-3-Clause */
/* What the simulation's loop offers beyond loop.h and reactor.h: storage completes on it, and a
 * test looks whether it has work. */
#ifndef SIM_LOOP_H
#define SIM_LOOP_H

#include "loop.h"

/* A completion of a storage operation: @fn runs on the loop in a later pass.  @link is not on a
 * list. */
struct sim_cqe {
	struct list link;
	void (*fn)(struct sim_cqe *cqe);
};

/* A loop that is nothing else, as loop_poll_create() makes one.  0 or -errno. */
int sim_loop_create(struct loop **out);
/* What waits or is watched is forgotten. */
void sim_loop_destroy(struct loop *loop);

void sim_loop_complete(struct loop *loop, struct sim_cqe *cqe);
/* Nothing to do now: no message, task, completion or closed watch waits. */
bool sim_loop_idle(const struct loop *loop);

#endif
