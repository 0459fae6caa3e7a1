/* SPDX-License-Identifier: BSD-3-Clause */
/* A hist is a histogram of times: bucket b counts times from 2^b to below 2^(b+1) ns.  The first
 * and the last bucket also count all shorter and longer times.  A single thread counts, any thread
 * reads. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include "counter.h"

#define HIST_BUCKETS 40			/* the last: 9 minutes and more */

struct hist {				/* all 0: empty */
	struct counter n[HIST_BUCKETS];
	struct counter sum_ns;		/* of all times */
};

/* The bucket of @ns. */
static inline unsigned hist_bucket(uint64_t ns)
{
	unsigned b = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;

	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

/* Count @ns.  The thread of @h. */
static inline void hist_count(struct hist *h, uint64_t ns)
{
	counter_add(&h->n[hist_bucket(ns)], 1);
	counter_add(&h->sum_ns, ns);
}

/* Count @ns, if other threads may count in @h, too, though seldom.  Any thread. */
static inline void hist_count_shared(struct hist *h, uint64_t ns)
{
	counter_add_shared(&h->n[hist_bucket(ns)], 1);
	counter_add_shared(&h->sum_ns, ns);
}

/* Add @h to @sum @times times: 1, or -1 to subtract an @h that was added.  The thread of @sum;
 * another thread may count in @h meanwhile. */
void hist_add(struct hist *sum, const struct hist *h, int times);

/* The number of samples in @h. */
uint64_t hist_total(const struct hist *h);
/* The time below which @permille of 1000 samples lie, as if the samples of a bucket lay evenly in
 * the bucket; 0: empty. */
uint64_t hist_quantile(const struct hist *h, unsigned permille);

#endif
