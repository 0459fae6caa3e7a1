/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <assert.h>

#include "bucket.h"
#include "util.h"

#define SECOND UINT64_C(1000000000)

/* The earliest time that units saved up until @now_ns can be from. */
static uint64_t burst_begin(const struct bucket *b, uint64_t now_ns)
{
	return now_ns > b->burst_ns ? now_ns - b->burst_ns : 0;
}

void bucket_set(struct bucket *b, uint64_t rate, uint64_t burst_ns, uint64_t now_ns)
{
	assert(rate <= BUCKET_RATE_MAX);
	if (b->rate == rate && b->burst_ns == burst_ns)
		return;
	*b = (struct bucket){ .rate = rate, .burst_ns = burst_ns };
	b->due_ns = burst_begin(b, now_ns);
}

uint64_t bucket_take(struct bucket *b, uint32_t units, uint64_t now_ns)
{
	uint64_t all, ns;

	if (!b->rate)
		return 0;
	all = units * SECOND + b->rest;	/* UINT32_MAX * SECOND + BUCKET_RATE_MAX fits */
	ns = all / b->rate;
	b->rest = all % b->rate;
	b->due_ns = MAX(b->due_ns, burst_begin(b, now_ns)) + ns;
	return ns;
}
