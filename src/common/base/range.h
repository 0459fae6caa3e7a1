/* SPDX-License-Identifier: BSD-3-Clause */
/* A range_lock orders overlapping writes of a device.
 *
 * A write of a part of a block reads the block, changes the part and writes the block back.  If
 * another writer wrote the block in between, old bytes would overwrite an acknowledged write.  So
 * every writer enters its range here.  Writers of whole blocks share; a writer of a part excludes
 * every overlapping writer.  Order of arrival: a range never waits for a later range.
 *
 * Never blocks, cannot fail; range_enter() tells a range to wait.  Any thread. */
#ifndef RANGE_H
#define RANGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct range_lock {
	pthread_mutex_t lock;
	struct list ranges;		/* every range that has entered, in order */
	unsigned nexclusive;
};

/* The range of a write, embedded in its owner. */
struct range {
	/* set by the caller before range_enter() */
	uint64_t start, end;		/* [start, end) */
	bool exclusive;
	/* @r may go on.  Called on the thread that left the range before, with the lock held: only
	 * wake. */
	void (*granted)(struct range *r);
	/* private */
	struct list link;		/* lock */
	bool waits;			/* lock */
};

/* Initialise @l, with no range. */
void range_lock_init(struct range_lock *l);
/* Release @l, which no range is in. */
void range_lock_fini(struct range_lock *l);

/* Enter @r.  True: go on.  False: wait for @r->granted(). */
bool range_enter(struct range_lock *l, struct range *r);
/* True if @r may go on, for a thread that was woken for an unknown reason. */
bool range_is_granted(struct range_lock *l, const struct range *r);
/* Leave @r, granted or not: once for each range_enter(). */
void range_leave(struct range_lock *l, struct range *r);

#endif
