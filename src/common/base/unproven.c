/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: places are inside the members.  Cannot fail. */
#include "unproven.h"

void unproven_init(struct unproven *c, unsigned max, unsigned net_max)
{
	*c = (struct unproven){ .max = max, .net_max = net_max };
	list_init(&c->nets);
}

struct unproven_place *unproven_full(const struct unproven *c, uint64_t net)
{
	struct unproven_place *oldest, *most = NULL;

	list_for_each(oldest, &c->nets, net) {
		if (oldest->nsame >= c->net_max && oldest->number == net &&
		    net != UNPROVEN_NET_UNBOUND)
			return oldest;
		/* Of two nets with as many, whose oldest has been here longer. */
		if (!most || oldest->nsame > most->nsame ||
		    (oldest->nsame == most->nsame && oldest->came < most->came))
			most = oldest;
	}
	return c->n < c->max ? NULL : most;
}

void unproven_enter(struct unproven *c, struct unproven_place *p, uint64_t net)
{
	struct unproven_place *oldest;

	*p = (struct unproven_place){ .of = c, .number = net, .nsame = 1, .came = c->ncame++ };
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

/* The oldest of the net of @p.  Only the oldest is in unproven.nets. */
static struct unproven_place *net_oldest(struct unproven_place *p)
{
	while (list_empty(&p->net))
		p = list_entry(p->same.next, struct unproven_place, same);
	return p;
}

void unproven_leave(struct unproven_place *p)
{
	struct unproven *c = p->of;
	struct unproven_place *oldest, *next;

	if (!c)
		return;
	oldest = net_oldest(p);
	c->n--;
	oldest->nsame--;
	if (p == oldest && p->nsame) {
		next = list_entry(p->same.next, struct unproven_place, same);
		next->nsame = p->nsame;
		list_add_tail(&c->nets, &next->net);
	}
	list_del(&p->net);
	list_del(&p->same);
	p->of = NULL;
}
