/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of IOs in buckets, and looks, which are differences of a load's counters: no IO costs more
 * for them. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
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

/* ---- looks ---- */

#define S_NS UINT64_C(1000000000)

static uint64_t left_s(const struct look *now, const struct load *l, uint64_t ended,
		       uint64_t now_ns)
{
	/* To the nearest second: looks are a little early or late. */
	uint64_t ran_s = (now_ns - l->began_ns + S_NS / 2) / S_NS, left = LOOK_UNKNOWN;

	if (l->conf.runtime_s)
		left = l->conf.runtime_s - MIN(l->conf.runtime_s, ran_s);
	if (l->conf.ios && now->iops)
		left = MIN(left, (l->conf.ios - ended) / now->iops);
	return left;
}

/* The part of the blocks that was read back, in percent. */
static unsigned read_back_percent(const struct load *l)
{
	return l->nblocks ? (unsigned)(MIN(l->next, l->nblocks) * 100 / l->nblocks) : 0;
}

void lat_look(struct look *now, struct look_back *back, const struct load *l, uint64_t now_ns)
{
	uint64_t ended = l->begun - l->inflight,
		since_ns = now_ns - (back->at_ns ? back->at_ns : l->began_ns);

	back->since = l->side[LOAD_READ].lat;
	lat_add(&back->since, &l->side[LOAD_WRITE].lat);
	lat_sub(&back->since, &back->all);
	*now = (struct look){
		.phase = l->phase,
		.percent = read_back_percent(l),
		.inflight = l->inflight,
		.iops = since_ns ?
		(uint64_t)((double)(ended - back->ended) * S_NS / (double)since_ns) : 0,
		.p99_ns = lat_quantile(&back->since, 990),
	};
	now->left_s = left_s(now, l, ended, now_ns);
	lat_add(&back->all, &back->since);
	back->ended = ended;
	back->at_ns = now_ns;
}

const char *lat_look_text(const struct look *now, char buf[LOOK_TEXT_MAX])
{
	char left[24] = "?", p99[LAT_TEXT_MAX] = "-";

	if (now->left_s != LOOK_UNKNOWN)
		snprintf(left, sizeof(left), "%" PRIu64, now->left_s);
	if (now->p99_ns)
		lat_text(now->p99_ns, p99);
	switch (now->phase) {
	case LOAD_RUNS:
		snprintf(buf, LOOK_TEXT_MAX, "%s s left, %" PRIu64 " IOPS, p99 %s", left, now->iops,
			 p99);
		break;
	case LOAD_READS_BACK:
		snprintf(buf, LOOK_TEXT_MAX, "reads back, %u %%, %" PRIu64 " IOPS", now->percent,
			 now->iops);
		break;
	case LOAD_ENDS:
	case LOAD_ENDED:
		snprintf(buf, LOOK_TEXT_MAX, "ends, %u in flight", now->inflight);
		break;
	}
	return buf;
}
