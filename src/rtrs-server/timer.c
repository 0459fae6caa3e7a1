/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: links timers that live in their owners, on the thread of their owner.  A server has
 * a handful of them (heartbeats, back-offs, time-outs), most of which are set to the latest deadline,
 * so the place is searched from the end. */
#include "clock.h"
#include "timer.h"

void timers_init(struct timers *t)
{
	list_init(&t->sorted);
}

void timer_init(struct timer *timer, void (*fn)(struct timer *timer))
{
	list_init(&timer->link);
	timer->at_ms = CLOCK_NEVER;
	timer->fn = fn;
}

void timer_set(struct timers *t, struct timer *timer, uint64_t at_ms)
{
	struct list *at = &t->sorted;

	list_del(&timer->link);
	timer->at_ms = at_ms;
	while (at->prev != &t->sorted && list_entry(at->prev, struct timer, link)->at_ms > at_ms)
		at = at->prev;
	list_insert_before(at, &timer->link);
}

void timer_cancel(struct timer *timer)
{
	list_del(&timer->link);
}

uint64_t timers_next(const struct timers *t)
{
	if (list_empty(&t->sorted))
		return CLOCK_NEVER;
	return list_entry(t->sorted.next, struct timer, link)->at_ms;
}

void timers_run(struct timers *t, uint64_t now_ms)
{
	struct list due;

	/* What is due now is taken off first: a handler that sets a timer for now runs in the next
	 * pass and cannot keep this one going.  Cancelling works on either list. */
	list_init(&due);
	while (timers_next(t) <= now_ms && !list_empty(&t->sorted)) {
		struct list *first = t->sorted.next;

		list_del(first);
		list_add_tail(&due, first);
	}
	while (!list_empty(&due)) {
		struct timer *timer = list_entry(list_pop(&due), struct timer, link);

		timer->fn(timer);
	}
}
