/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns dealt out by host: who waits for whom. */
#include "unit.h"
#include "worker.h"

static struct deal deal;
static struct deal_item items[64];

static void begin(void)
{
	deal_init(&deal);
}

TestSuite(deal, .init = begin);

/* The places in items[] of all that wait, in the order in which they are taken. */
static void takes(const unsigned *want, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct deal_item *item = deal_take(&deal);

		cr_assert_not_null(item);
		cr_assert_eq(item - items, want[i], "%u: %u", i, (unsigned)(item - items));
	}
	cr_assert_null(deal_take(&deal));
}

Test(deal, many_of_one_host)
{
	for (unsigned i = 0; i < 4; i++)
		deal_add(&deal, &items[i], 1);
	cr_assert_eq(deal_take(&deal), &items[0]);
	/* A newcomer is next, and a second one of its host waits as the first host does. */
	deal_add(&deal, &items[4], 2);
	deal_add(&deal, &items[5], 2);
	takes((unsigned[]){ 4, 1, 5, 2, 3 }, 5);
}

/* A host with one item, which comes back at once, waits for one of each other host; so do these. */
Test(deal, comes_back)
{
	for (unsigned i = 0; i < 3; i++)
		deal_add(&deal, &items[i], 1);
	deal_add(&deal, &items[3], 2);
	for (unsigned i = 0; i < 20; i++) {
		struct deal_item *item = deal_take(&deal);

		cr_assert_eq(item->net, 1 + i % 2, "turn %u", i);
		deal_add(&deal, item, item->net);
	}
}

Test(deal, leaves)
{
	for (unsigned i = 0; i < 3; i++)
		deal_add(&deal, &items[i], i);
	deal_leave(&items[1]);
	takes((unsigned[]){ 0, 2 }, 2);
}
