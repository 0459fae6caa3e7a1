/* SPDX-License-Identifier: BSD-3-Clause */
/* The unproven: peers that have proven nothing yet, connections of which nobody knows whose they
 * are.  They are bounded in number and in time, and a newcomer may take the place of another one.
 *
 * A net is what one host may fill at will; the caller numbers nets.  A newcomer of a net that has
 * its share takes the place of a member of the same net.  If all places are taken, the newcomer
 * takes the place of a member of the net that has the most.  So a host that comes and comes pushes
 * itself out, and an honest peer of another host has time to say who it is, over any distance.
 *
 * Chance picks the member of a net.  The oldest would be the one that is nearest to its proof:
 * where proofs take longer than newcomers need to fill the places, nobody of the net would ever
 * finish.  With chance, a member that sees N newcomers take places of its net stays with a
 * probability of (1 - 1/share)^N.  The price: behind the address of a host that floods, a short
 * proof is pushed out at times, too, and the client has to come again.
 *
 * The loop's thread; without a loop there is no time, and one thread at a time calls.  A call costs
 * a step for each net, and for each member of the net that gives up a place. */
#ifndef BASE_UNPROVEN_H
#define BASE_UNPROVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "loop.h"

#define UNPROVEN_NET_UNBOUND UINT64_MAX	/* the net that may have all places */

struct unproven_place;

/* Why somebody has to go. */
enum unproven_why {
	UNPROVEN_ONE_TOO_MANY,		/* a newcomer takes the place */
	UNPROVEN_LATE,			/* the time is over */
};

/* UNPROVEN_ONE_TOO_MANY for the log, behind what there are too many of. */
#define UNPROVEN_TOO_MANY "too many at once, and a newcomer took its place"

struct unproven {
	struct loop *loop;		/* NULL: no time */
	void (*end)(struct unproven_place *p, enum unproven_why why);
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
	struct loop_timer time;
};

/* Make @c, of nobody yet, for @max members, at most @net_max of them of a net.  @end has the member
 * of @p leave, and ends its connection.  @end is called for nobody that has left. */
void unproven_init(struct unproven *c, struct loop *loop, unsigned max, unsigned net_max,
		   void (*end)(struct unproven_place *p, enum unproven_why why));
/* Let @p, a member of @net, into @c, for @ms if there is a loop.  If there is no place for @net, @c
 * ends another member before. */
void unproven_enter(struct unproven *c, struct unproven_place *p, uint64_t net, uint64_t ms);
/* Take @p out, if it is in: a place of zeroes is nowhere in.  Returns how many ms were left. */
uint64_t unproven_leave(struct unproven_place *p);
/* Give @p, which is in, @ms from now on. */
void unproven_give_time(struct unproven_place *p, uint64_t ms);

/* True if @p is in. */
static inline bool unproven_is_in(const struct unproven_place *p)
{
	return p->of;
}

#endif
