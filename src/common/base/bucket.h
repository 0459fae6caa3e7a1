/* SPDX-License-Identifier: BSD-3-Clause */
/* A bucket lets units through at a rate: requests or bytes a second.  Units that nobody took are
 * saved up for @burst_ns at most, and may then go at once.
 *
 * The state of a bucket is one time, @due_ns: units may go from this time on, and each unit moves
 * the time on by 1/rate.  A request goes when the time has come, however many units the request
 * has; the requests behind it wait for the rest.  So in any window of w seconds the units that go,
 * without those of the last request, are at most rate * (w + burst).
 *
 * The caller reads the clock and serialises the calls.  Pure; cannot fail. */
#ifndef BASE_BUCKET_H
#define BASE_BUCKET_H

#include <assert.h>
#include <stdint.h>

#include "util.h"

#define BUCKET_RATE_MAX (UINT64_C(1) << 40)	/* units a second */

struct bucket {
	uint64_t rate;			/* units a second; 0: no limit */
	uint64_t burst_ns;
	uint64_t due_ns;		/* when units may go; clock_now_ns() time */
	uint64_t rest;			/* of a nanosecond, in 1/rate */
};

/* The earliest time that units saved up until @now_ns can be from. */
static inline uint64_t bucket_burst_begin(const struct bucket *b, uint64_t now_ns)
{
	return now_ns > b->burst_ns ? now_ns - b->burst_ns : 0;
}

/* Let @rate units a second through, with bursts of @burst_ns, from @now_ns on.  The bucket begins
 * with a whole burst, unless rate and burst are those of before: then nothing changes. */
static inline void bucket_set(struct bucket *b, uint64_t rate, uint64_t burst_ns, uint64_t now_ns)
{
	assert(rate <= BUCKET_RATE_MAX);
	if (b->rate == rate && b->burst_ns == burst_ns)
		return;
	*b = (struct bucket){ .rate = rate, .burst_ns = burst_ns };
	b->due_ns = bucket_burst_begin(b, now_ns);
}

/* The time when the next request may go; 0: there is no limit. */
static inline uint64_t bucket_ready_ns(const struct bucket *b)
{
	return b->rate ? b->due_ns : 0;
}

/* Let a request of @units go at @now_ns, when bucket_ready_ns() has come.  Returns the time that
 * the units take at the rate. */
static inline uint64_t bucket_take(struct bucket *b, uint32_t units, uint64_t now_ns)
{
	uint64_t all, ns;

	if (!b->rate)
		return 0;
	/* UINT32_MAX seconds of nanoseconds, and BUCKET_RATE_MAX, fit. */
	all = units * UINT64_C(1000000000) + b->rest;
	ns = all / b->rate;
	b->rest = all % b->rate;
	b->due_ns = MAX(b->due_ns, bucket_burst_begin(b, now_ns)) + ns;
	return ns;
}

#endif
