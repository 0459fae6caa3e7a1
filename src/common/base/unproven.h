/* SPDX-License-Identifier: BSD-3-Clause */
/* The unproven: peers that have proven nothing yet, connections of which nobody knows whose they
 * are.  They are bounded in number, and a newcomer may take the place of another one.
 *
 * A net is what one host may fill at will; the caller numbers nets.  A net that has its
 * share gives up its own oldest.  If all places are taken, the net that has the most gives up its
 * oldest.  So a host that comes and comes pushes itself out, and an honest peer has time to say who
 * it is, over any distance.
 *
 * Pure; one thread at a time.  A call costs a step for each net. */
#ifndef BASE_UNPROVEN_H
#define BASE_UNPROVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

#define UNPROVEN_NET_UNBOUND UINT64_MAX	/* the net that may have all places */

struct unproven {
	unsigned n;
	unsigned max, net_max;		/* places of all, and the share of a net */
	struct list nets;		/* unproven_place.net of the oldest of each net */
	uint64_t ncame;			/* up to now */
};

/* A member's place, inside the member. */
struct unproven_place {
	struct unproven *of;		/* NULL: no member */
	uint64_t number;		/* of the net */
	struct list net;		/* in unproven.nets; of the others of the net: alone */
	struct list same;		/* ring of the net, in the order of arrival */
	unsigned nsame;			/* of the oldest: places of the net */
	uint64_t came;			/* the number of arrivals before */
};

/* Make @c, of nobody yet, for @max members, at most @net_max of them of a net. */
void unproven_init(struct unproven *c, unsigned max, unsigned net_max);
/* Find the member that has to leave before a newcomer of @net may enter.  NULL: none.  The caller
 * has the member leave. */
struct unproven_place *unproven_full(const struct unproven *c, uint64_t net);
/* Let @p, a member of @net, into @c. */
void unproven_enter(struct unproven *c, struct unproven_place *p, uint64_t net);
/* Take @p out, if it is in: a place of zeroes is nowhere in. */
void unproven_leave(struct unproven_place *p);

#endif
