/* SPDX-License-Identifier: BSD-3-Clause */
/* A crowd: connections of which nobody knows yet whose they are, bounded in number.  The crowd says
 * who makes room for a newcomer.
 *
 * A net, as fab_addr_same_net() says, is what one host may fill at will: of AF_UNIX all processes
 * of a user.  A net that has its share gives up its own oldest.  If all places are taken, the net
 * that has the most gives up its oldest.  So a host that comes and comes pushes itself out, and an
 * honest peer has time to say who it is, over any distance.
 *
 * Pure; one thread at a time.  A call costs a step for each net of the crowd. */
#ifndef FAB_CROWD_H
#define FAB_CROWD_H

#include "fabric.h"
#include "list.h"

struct fab_crowd {
	unsigned n;
	unsigned max, net_max;		/* places of all, and the share of a net */
	struct list nets;		/* fab_crowd_place.net of the oldest of each net */
	uint64_t ncame;			/* up to now */
};

/* A member's place, inside the member. */
struct fab_crowd_place {
	const struct fab_addr *addr;	/* the member's */
	struct list net;		/* in fab_crowd.nets; of the others of the net: alone */
	struct list same;		/* ring of the net, in the order of arrival */
	unsigned nsame;			/* of the oldest: places of the net */
	uint64_t came;			/* the number of arrivals before */
};

/* Make @c an empty crowd of @max members, at most @net_max of them of a net. */
void fab_crowd_init(struct fab_crowd *c, unsigned max, unsigned net_max);
/* Who has to leave before somebody at @addr may enter.  NULL: nobody.  The caller has the member
 * leave. */
struct fab_crowd_place *fab_crowd_full(const struct fab_crowd *c, const struct fab_addr *addr);
/* Let @p, a member at @addr, into @c.  @addr lives and stays as it is until @p leaves. */
void fab_crowd_enter(struct fab_crowd *c, struct fab_crowd_place *p, const struct fab_addr *addr);
/* Take @p, a member, out of @c. */
void fab_crowd_leave(struct fab_crowd *c, struct fab_crowd_place *p);

#endif
