/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: places are inside the members.  Cannot fail. */
#include "clock.h"
#include "unproven.h"

void unproven_init(struct unproven *c, struct loop *loop, unsigned max, unsigned net_max,
		   void (*end)(struct unproven_place *p, enum unproven_why why))
{
	*c = (struct unproven){ .loop = loop, .end = end, .max = max, .net_max = net_max };
	list_init(&c->nets);
}

/* The net that has to give up a place before a newcomer of @net may enter, by its oldest.  NULL:
 * none. */
static struct unproven_place *net_to_shrink(const struct unproven *c, uint64_t net)
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

/* Any member of the net of @oldest. */
static struct unproven_place *any_of_net(struct unproven_place *oldest)
{
	struct unproven_place *p = oldest;
	uint32_t dice;

	random_bytes(&dice, sizeof(dice));
	for (unsigned i = dice % oldest->nsame; i; i--)
		p = list_entry(p->same.next, struct unproven_place, same);
	return p;
}

static void unproven_late(struct loop_timer *timer)
{
	struct unproven_place *p = container_of(timer, struct unproven_place, time);

	p->of->end(p, UNPROVEN_LATE);
}

void unproven_give_time(struct unproven_place *p, uint64_t ms)
{
	if (p->of->loop)
		loop_timer_set(p->of->loop, &p->time, clock_now_ms() + ms);
}

void unproven_enter(struct unproven *c, struct unproven_place *p, uint64_t net, uint64_t ms)
{
	struct unproven_place *oldest = net_to_shrink(c, net);

	if (oldest)
		c->end(any_of_net(oldest), UNPROVEN_ONE_TOO_MANY);

	*p = (struct unproven_place){ .of = c, .number = net, .nsame = 1, .came = c->ncame++ };
	list_init(&p->net);
	list_init(&p->same);
	loop_timer_init(&p->time, unproven_late);
	unproven_give_time(p, ms);
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

uint64_t unproven_leave(struct unproven_place *p)
{
	struct unproven *c = p->of;
	struct unproven_place *oldest, *next;
	uint64_t now_ms = clock_now_ms();

	if (!c)
		return 0;
	loop_timer_cancel(&p->time);
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
	return c->loop && p->time.at_ms > now_ms ? p->time.at_ms - now_ms : 0;
}
