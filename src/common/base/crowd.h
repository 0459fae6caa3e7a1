/* SPDX-License-Identifier: BSD-3-Clause */
/* A crowd: connections of which nobody knows yet whose they are, bounded in number.  The crowd says
 * who makes room for a newcomer.
 *
 * A net is what one host may fill at will; the user of a crowd numbers nets.  A net that has its
 * share gives up its own oldest.  If all places are taken, the net that has the most gives up its
 * oldest.  So a host that comes and comes pushes itself out, and an honest peer has time to say who
 * it is, over any distance.
 *
 * Pure; one thread at a time.  A call costs a step for each net of the crowd. */
#ifndef BASE_CROWD_H
#define BASE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

#define CROWD_NET_UNBOUND UINT64_MAX	/* the net that may have all places */

struct crowd {
	unsigned n;
	unsigned max, net_max;		/* places of all, and the share of a net */
	struct list nets;		/* crowd_place.net of the oldest of each net */
	uint64_t ncame;			/* up to now */
};

/* A member's place, inside the member. */
struct crowd_place {
	struct crowd *crowd;		/* NULL: no member */
	uint64_t number;		/* of the net */
	struct list net;		/* in crowd.nets; of the others of the net: alone */
	struct list same;		/* ring of the net, in the order of arrival */
	unsigned nsame;			/* of the oldest: places of the net */
	uint64_t came;			/* the number of arrivals before */
};

/* Make @c an empty crowd of @max members, at most @net_max of them of a net. */
void crowd_init(struct crowd *c, unsigned max, unsigned net_max);
/* Find the member that has to leave before a newcomer of @net may enter.  NULL: none.  The caller
 * has the member leave. */
struct crowd_place *crowd_full(const struct crowd *c, uint64_t net);
/* Let @p, a member of @net, into @c. */
void crowd_enter(struct crowd *c, struct crowd_place *p, uint64_t net);
/* Take @p out of its crowd, if it is in one: a place of zeroes is in none. */
void crowd_leave(struct crowd_place *p);

#endif
