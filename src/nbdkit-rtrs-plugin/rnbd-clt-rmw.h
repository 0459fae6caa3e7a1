/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of a device that are being written.
 *
 * A write that does not begin or end on a block reads that block, changes it and writes it back; in
 * between nobody else may write the block, or old bytes would overwrite an acknowledged write.  So
 * every writer enters its range here: plain writers share, a read-modify-write excludes all that
 * overlap.  Order of arrival: nobody waits for one that came later.
 *
 * Never blocks; who must wait is told through its waiter.  Any thread. */
#ifndef RNBD_CLT_RMW_H
#define RNBD_CLT_RMW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "clt-wait.h"
#include "list.h"

struct rmw_lock {
	pthread_mutex_t lock;
	struct list ranges;		/* of all that entered, in order */
	unsigned nexclusive;
};

struct rmw_range {
	struct list link;
	uint64_t start, end;		/* [start, end) */
	bool exclusive;
	bool granted;			/* lock */
	struct clt_waiter waiter;
};

void rmw_lock_init(struct rmw_lock *l);
void rmw_lock_fini(struct rmw_lock *l);

/* Enter [start, end).  True: go on.  False: wait until @r->waiter was told to look, then ask
 * rmw_granted().  @fn as in clt_waiter_init(). */
bool rmw_enter(struct rmw_lock *l, struct rmw_range *r, uint64_t start, uint64_t end,
	       bool exclusive, void (*fn)(struct clt_waiter *w));
bool rmw_granted(struct rmw_lock *l, struct rmw_range *r);
/* Once for each rmw_enter(), granted or not. */
void rmw_leave(struct rmw_lock *l, struct rmw_range *r);

#endif
