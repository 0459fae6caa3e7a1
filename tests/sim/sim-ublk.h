/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk of the kernel's ublk_drv with one queue, in the place of ublk-kernel.c: its users are
 * fibers, and it outlives the processes that serve it.  What a process has answered counts; what a
 * process that was killed has not answered is handed out again, to the next one. */
#ifndef SIM_UBLK_H
#define SIM_UBLK_H

#include <stdbool.h>
#include <stdint.h>

struct sim_ublk;

/* A disk with @depth tags, as the descriptor @fd has it for ublk_ring_create(). */
struct sim_ublk *sim_ublk_create(uint16_t depth, int *fd);
/* No process serves it, and no user waits. */
void sim_ublk_destroy(struct sim_ublk *u);

/* Hand out requests, now that a process has given its tags; as START_DEV, or the end of a
 * recovery. */
void sim_ublk_go(struct sim_ublk *u);
/* The process that serves is killed, or ends. */
void sim_ublk_kill(struct sim_ublk *u);

/* A request of a user, a fiber that waits for the answer: 0 or -errno.  @op_flags: UBLK_OP_* and
 * UBLK_F_*; @buf has the sectors of a READ or WRITE. */
int sim_ublk_io(struct sim_ublk *u, uint32_t op_flags, uint64_t start, uint32_t sectors, void *buf);
/* Requests that were handed out again, so far. */
unsigned sim_ublk_again(const struct sim_ublk *u);

#endif
