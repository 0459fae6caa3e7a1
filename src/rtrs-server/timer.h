/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of one thread: a sorted list, so that a cancelled timer leaves nothing in flight.  Used
 * by its owner thread only.  A timer is embedded in its owner. */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

#include "list.h"

struct timer {
	struct list link;
	uint64_t at_ms;
	void (*fn)(struct timer *timer);
};

struct timers {
	struct list sorted;
};

void timers_init(struct timers *t);
void timer_init(struct timer *timer, void (*fn)(struct timer *timer));
/* (Re)arm for clock_now_ms() time @at_ms. */
void timer_set(struct timers *t, struct timer *timer, uint64_t at_ms);
/* Idempotent. */
void timer_cancel(struct timer *timer);
/* Earliest deadline, or CLOCK_NEVER. */
uint64_t timers_next(const struct timers *t);
/* Run what is due at @now_ms, in order; a handler may set and cancel any timer. */
void timers_run(struct timers *t, uint64_t now_ms);

#endif
