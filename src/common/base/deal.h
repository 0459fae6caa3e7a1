/* SPDX-License-Identifier: BSD-3-Clause */
/* A deal: waiting items of many hosts, dealt out one of each host in turn.  A host with many items
 * waits behind itself: an item of another host has at most one item of each host in front of it.
 *
 * Items have rounds.  An item gets the round that is dealt out now, or one behind the last item of
 * its host that waits, or one behind its own last round, whichever is the latest.  A net is what
 * one host may fill at will, as in unproven.h.
 *
 * Pure; one thread at a time.  Adding costs a step for each item that waits. */
#ifndef BASE_DEAL_H
#define BASE_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct deal {
	struct list waiting;		/* deal_item.link, by rounds */
	uint64_t round;			/* of the item that was taken last */
};

/* Inside of what waits; all 0 before deal_add(). */
struct deal_item {
	struct list link;
	uint64_t net;
	uint64_t round;			/* the last one of the item */
};

/* Make @d empty. */
void deal_init(struct deal *d);
/* Let @item, of @net, wait in @d. */
void deal_add(struct deal *d, struct deal_item *item, uint64_t net);
/* Take out the item whose turn it is.  NULL: none waits. */
struct deal_item *deal_take(struct deal *d);
/* Take out @item, which waits. */
void deal_leave(struct deal_item *item);

#endif
