/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: items belong to the caller.  Cannot fail. */
#include "deal.h"
#include "util.h"

void deal_init(struct deal *d)
{
	*d = (struct deal){ 0 };
	list_init(&d->waiting);
}

/* The round of the next item of @net. */
static uint64_t next_round(const struct deal *d, const struct deal_item *item, uint64_t net)
{
	uint64_t round = MAX(d->round, item->round + 1);
	const struct deal_item *other;

	list_for_each(other, &d->waiting, link) {
		if (other->net == net)
			round = MAX(round, other->round + 1);
	}
	return round;
}

void deal_add(struct deal *d, struct deal_item *item, uint64_t net)
{
	struct deal_item *later;

	item->round = next_round(d, item, net);
	item->net = net;
	list_for_each(later, &d->waiting, link) {
		if (later->round > item->round) {
			list_insert_before(&later->link, &item->link);
			return;
		}
	}
	list_add_tail(&d->waiting, &item->link);
}

struct deal_item *deal_take(struct deal *d)
{
	struct deal_item *item = list_pop_entry(&d->waiting, struct deal_item, link);

	if (item)
		d->round = item->round;
	return item;
}

void deal_leave(struct deal_item *item)
{
	list_del(&item->link);
}
