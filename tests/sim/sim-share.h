/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a disk that several servers have (store-lead.h), and the fence behind it, as a
 * cluster has them.
 *
 * A server that opens the disk gets a number.  The owner of the lock is a number.  Who breaks the
 * lock fences its owner for good: nothing that the number asks for from then on is done, whatever
 * was begun before.  A fenced server is not told: it meets -ESHUTDOWN when it asks for something.
 * The service tells late: for some time after a change it may name the owner from before.
 *
 * A break ends the test if the server has broken locks more often than store-lead.h promises.
 * Waits are virtual time: take() and yield() run in a fiber of the server. */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_share;

struct sim_share *sim_share_create(void);
void sim_share_destroy(struct sim_share *s);

/* ---- for the disk ---- */

/* The current host opens the disk; returns its number, which is never 0. */
unsigned sim_share_join(struct sim_share *s);
/* @number closes the disk in good order; with the lock, if it has the lock. */
void sim_share_leave(struct sim_share *s, unsigned number);
/* Must what @number asks for be refused with -ESHUTDOWN? */
bool sim_share_fenced(const struct sim_share *s, unsigned number);
/* Has @number the lock? */
bool sim_share_owns(const struct sim_share *s, unsigned number);
/* The server of @number is told of -ESHUTDOWN now. */
void sim_share_told(struct sim_share *s, unsigned number);

/* ---- for the driver (export.h: take, yield) ---- */

int sim_share_take(struct sim_share *s, unsigned number, uint64_t may_break_ms, uint64_t since_ms,
		   const _Atomic(bool) *stopping, char *why, size_t len);
int sim_share_yield(struct sim_share *s, unsigned number);

/* ---- for the test ---- */

/* For how long the service may name the owner from before, and how long a break takes, at most.  At
 * first 0. */
void sim_share_be_late(struct sim_share *s, unsigned ms);
/* Each taking of the lock fails with @err from now on, as if the storage were away; 0: none. */
void sim_share_refuse(struct sim_share *s, int err);
/* The cluster fences what the server on @host has opened, for a reason of its own. */
void sim_share_fence(struct sim_share *s, const char *host);
/* The server on @host has stopped in good order: the next one there knows nothing of its losses. */
void sim_share_ended(struct sim_share *s, const char *host);
/* Administrators have locks broken, by which no promise of store-lead.h is broken. */
void sim_share_let_break(struct sim_share *s);
/* Locks that were broken so far, of owners that were alive. */
unsigned sim_share_breaks(const struct sim_share *s);

#endif
