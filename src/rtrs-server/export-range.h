/* SPDX-License-Identifier: BSD-3-Clause */
/* Who writes where in a direct export whose O_DIRECT blocks are larger than a sector.
 *
 * A write of part of a block has to read the block, change it and write it back; no other write of
 * that block may happen meanwhile, or it would be undone.  Writes enter with the blocks they cover: an
 * entry that overlaps an earlier one waits if either of the two is partial.  Order of arrival is kept
 * among those that overlap.  Any thread; each entry belongs to one thread, where it is told. */
#ifndef EXPORT_RANGE_H
#define EXPORT_RANGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "inbox.h"
#include "list.h"

struct export_ranges {
	pthread_mutex_t lock;
	struct list entries;		/* in order of arrival */
};

struct export_range {
	struct list link;		/* under the lock */
	uint64_t start, end;		/* bytes, [start, end), whole blocks */
	bool partial;
	bool waiting;
	struct inbox *inbox;		/* of the entry's thread */
	struct inbox_msg granted;
};

void export_ranges_init(struct export_ranges *rs);

/* Enter @r: start, end, partial, inbox and granted.fn are set.  True: go ahead.  False: @r->granted
 * will be posted to @r->inbox when it may. */
bool export_range_enter(struct export_ranges *rs, struct export_range *r);
/* Leave; wakes those that waited for it. */
void export_range_leave(struct export_ranges *rs, struct export_range *r);

#endif
