/* SPDX-License-Identifier: BSD-3-Clause */
/* Who makes room in a crowd.  Owns nothing: places are inside the members.  Cannot fail. */
#include "fab-crowd.h"

void fab_crowd_init(struct fab_crowd *c, unsigned max, unsigned net_max)
{
	*c = (struct fab_crowd){ .max = max, .net_max = net_max };
	list_init(&c->nets);
}

struct fab_crowd_place *fab_crowd_full(const struct fab_crowd *c, const struct fab_addr *addr)
{
	struct fab_crowd_place *oldest, *most = NULL;

	list_for_each(oldest, &c->nets, net) {
		if (oldest->nsame >= c->net_max && fab_addr_same_net(oldest->addr, addr))
			return oldest;
		/* Of two nets with as many, whose oldest has been here longer. */
		if (!most || oldest->nsame > most->nsame ||
		    (oldest->nsame == most->nsame && oldest->came < most->came))
			most = oldest;
	}
	return c->n < c->max ? NULL : most;
}

void fab_crowd_enter(struct fab_crowd *c, struct fab_crowd_place *p, const struct fab_addr *addr)
{
	struct fab_crowd_place *oldest;

	*p = (struct fab_crowd_place){ .addr = addr, .nsame = 1, .came = c->ncame++ };
	list_init(&p->net);
	list_init(&p->same);
	c->n++;
	list_for_each(oldest, &c->nets, net) {
		if (fab_addr_same_net(oldest->addr, addr)) {
			oldest->nsame++;
			list_add_tail(&oldest->same, &p->same);
			return;
		}
	}
	list_add_tail(&c->nets, &p->net);
}

/* The oldest of the net of @p.  Only the oldest is in fab_crowd.nets. */
static struct fab_crowd_place *net_oldest(struct fab_crowd_place *p)
{
	while (list_empty(&p->net))
		p = list_entry(p->same.next, struct fab_crowd_place, same);
	return p;
}

void fab_crowd_leave(struct fab_crowd *c, struct fab_crowd_place *p)
{
	struct fab_crowd_place *oldest = net_oldest(p), *next;

	c->n--;
	oldest->nsame--;
	if (p == oldest && p->nsame) {
		next = list_entry(p->same.next, struct fab_crowd_place, same);
		next->nsame = p->nsame;
		list_add_tail(&c->nets, &next->net);
	}
	list_del(&p->net);
	list_del(&p->same);
}
