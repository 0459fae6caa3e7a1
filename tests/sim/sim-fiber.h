/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions with a stack of their own that take turns with the rest of the simulation: what is a
 * thread of nbdkit in the real program.  Code that blocks there calls sim_fiber_wait() here. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct sim_fiber;

/* Start @fn as an actor of the current host and epoch; it runs at a later step. */
struct sim_fiber *sim_fiber_start(void (*fn)(void *arg), void *arg);
/* Has @fn returned? */
bool sim_fiber_done(const struct sim_fiber *f);
/* It must be done. */
void sim_fiber_free(struct sim_fiber *f);
/* The running fiber, or NULL outside of any. */
struct sim_fiber *sim_fiber_self(void);
/* Small number that differs between fibers.  They count from 1 again after the second. */
unsigned sim_fiber_id(const struct sim_fiber *f);
void sim_fiber_forget_ids(void);
/* Let others run until @cond holds.  In a fiber. */
void sim_fiber_wait(bool (*cond)(void *arg), void *arg);

#endif
