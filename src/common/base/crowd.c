/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: places are inside the members.  Cannot fail. */
#include "crowd.h"

void crowd_init(struct crowd *c, unsigned max, unsigned net_max)
{
	*c = (struct crowd){ .max = max, .net_max = net_max };
	list_init(&c->nets);
}

struct crowd_place *crowd_full(const struct crowd *c, uint64_t net)
{
	struct crowd_place *oldest, *most = NULL;

	list_for_each(oldest, &c->nets, net) {
		if (oldest->nsame >= c->net_max && oldest->number == net &&
		    net != CROWD_NET_UNBOUND)
			return oldest;
		/* Of two nets with as many, whose oldest has been here longer. */
		if (!most || oldest->nsame > most->nsame ||
		    (oldest->nsame == most->nsame && oldest->came < most->came))
			most = oldest;
	}
	return c->n < c->max ? NULL : most;
}

void crowd_enter(struct crowd *c, struct crowd_place *p, uint64_t net)
{
	struct crowd_place *oldest;

	*p = (struct crowd_place){ .crowd = c, .number = net, .nsame = 1, .came = c->ncame++ };
	list_init(&p->net);
	list_init(&p->same);
	c->n++;
	list_for_each(oldest, &c->nets, net) {
		if (oldest->number == net) {
			oldest->nsame++;
			list_add_tail(&oldest->same, &p->same);
			return;
		}
	}
	list_add_tail(&c->nets, &p->net);
}

/* The oldest of the net of @p.  Only the oldest is in crowd.nets. */
static struct crowd_place *net_oldest(struct crowd_place *p)
{
	while (list_empty(&p->net))
		p = list_entry(p->same.next, struct crowd_place, same);
	return p;
}

void crowd_leave(struct crowd_place *p)
{
	struct crowd *c = p->crowd;
	struct crowd_place *oldest, *next;

	if (!c)
		return;
	oldest = net_oldest(p);
	c->n--;
	oldest->nsame--;
	if (p == oldest && p->nsame) {
		next = list_entry(p->same.next, struct crowd_place, same);
		next->nsame = p->nsame;
		list_add_tail(&c->nets, &next->net);
	}
	list_del(&p->net);
	list_del(&p->same);
	p->crowd = NULL;
}
