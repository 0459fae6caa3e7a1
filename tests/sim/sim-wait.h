/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests of fibers wait (clt-wait.h). */
#ifndef SIM_WAIT_H
#define SIM_WAIT_H

#include "clt-wait.h"

extern const struct clt_wait_ops sim_wait_fibers;
/* world_client_conf.wait of a client with all IO on its loops: sim-wait-loops.c. */
const struct clt_wait_ops *sim_wait_loops(void);

/* clt_wait_ops.event of any table in the simulation: the fiber that calls waits. */
void sim_wait_event(struct clt_waiter *w);

#endif
