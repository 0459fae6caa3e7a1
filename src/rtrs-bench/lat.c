/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets of times.  Owns nothing; pure. */
#include <stdio.h>

#include "lat.h"
#include "util.h"

#define SUB_BITS 6

static unsigned lat_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns < LAT_SUB)
		return (unsigned)ns;
	shift = 63 - (unsigned)__builtin_clzll(ns) - SUB_BITS;
	return MIN((shift + 1) * LAT_SUB + (unsigned)(ns >> shift) - LAT_SUB, LAT_BUCKETS - 1u);
}

/* The longest time of a bucket. */
static uint64_t lat_bucket_end(unsigned b)
{
	unsigned shift = b / LAT_SUB;

	if (!shift)
		return b;
	shift--;
	return ((uint64_t)(LAT_SUB + b % LAT_SUB + 1) << shift) - 1;
}

void lat_count(struct lat *l, uint64_t ns)
{
	l->n[lat_bucket(ns)]++;
	l->count++;
	l->sum_ns += ns;
	l->max_ns = MAX(l->max_ns, ns);
}

uint64_t lat_quantile(const struct lat *l, unsigned permille)
{
	uint64_t rank = (l->count * permille + 999) / 1000, seen = 0;

	for (unsigned b = 0; l->count && b < LAT_BUCKETS; b++) {
		seen += l->n[b];
		if (seen >= MAX(rank, (uint64_t)1))
			return MIN(lat_bucket_end(b), l->max_ns);
	}
	return 0;
}

uint64_t lat_mean(const struct lat *l)
{
	return l->count ? l->sum_ns / l->count : 0;
}

void lat_add(struct lat *sum, const struct lat *l)
{
	for (unsigned b = 0; b < LAT_BUCKETS; b++)
		sum->n[b] += l->n[b];
	sum->count += l->count;
	sum->sum_ns += l->sum_ns;
	sum->max_ns = MAX(sum->max_ns, l->max_ns);
}

void lat_sub(struct lat *sum, const struct lat *l)
{
	for (unsigned b = 0; b < LAT_BUCKETS; b++)
		sum->n[b] -= l->n[b];
	sum->count -= l->count;
	sum->sum_ns -= l->sum_ns;
}

const char *lat_text(uint64_t ns, char buf[LAT_TEXT_MAX])
{
	static const char *const units[] = { "us", "ms", "s" };
	double value = (double)ns / 1e3;
	unsigned unit = 0;

	for (; value >= 9999.5 && unit < 2; unit++)
		value /= 1000;
	snprintf(buf, LAT_TEXT_MAX, "%.*f %s", value < 100 ? 1 : 0, value, units[unit]);
	return buf;
}
