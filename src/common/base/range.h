/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of a device that are being written.
 *
 * A write of a part of a block reads that block, changes it and writes it back.  If somebody else
 * wrote the block in between, old bytes would overwrite an acknowledged write.  So every writer
 * enters its range here: writers of whole blocks share, one that changes a part excludes all that
 * overlap.  Order of arrival: nobody waits for one that came later.
 *
 * Never blocks, cannot fail; who must wait is told.  Any thread. */
#ifndef RANGE_H
#define RANGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct range_lock {
	pthread_mutex_t lock;
	struct list ranges;		/* of all that entered, in order */
	unsigned nexclusive;
};

/* Embedded in its owner. */
struct range {
	/* set by the caller before range_enter() */
	uint64_t start, end;		/* [start, end) */
	bool exclusive;
	/* The range may go on.  On the thread of the one that left, with the lock held: only
	 * wake. */
	void (*granted)(struct range *r);
	/* private */
	struct list link;		/* lock */
	bool waits;			/* lock */
};

void range_lock_init(struct range_lock *l);
void range_lock_fini(struct range_lock *l);

/* True: go on.  False: wait for @r->granted(). */
bool range_enter(struct range_lock *l, struct range *r);
/* For who was woken and cannot tell by what. */
bool range_is_granted(struct range_lock *l, const struct range *r);
/* Once for each range_enter(), granted or not. */
void range_leave(struct range_lock *l, struct range *r);

#endif
