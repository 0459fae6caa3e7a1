/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences of a load's counters.  Owns nothing; costs no IO anything. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "load.h"
#include "look.h"
#include "util.h"

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

static enum look_phase look_phase_of(const struct load *l)
{
	switch (l->phase) {
	case LOAD_RUNS:
		return LOOK_RUNS;
	case LOAD_READS_BACK:
		return LOOK_READS_BACK;
	case LOAD_ENDS:
	case LOAD_ENDED:
		break;
	}
	return LOOK_ENDS;
}

/* The part of the blocks that was read back, in percent. */
static unsigned read_back_percent(const struct load *l)
{
	return l->nblocks ? (unsigned)(MIN(l->next, l->nblocks) * 100 / l->nblocks) : 0;
}

void look_take(struct look *now, struct look_back *back, const struct load *l, uint64_t now_ns)
{
	uint64_t ended = l->begun - l->inflight,
		since_ns = now_ns - (back->at_ns ? back->at_ns : l->began_ns);

	back->since = l->side[LOAD_READ].lat;
	lat_add(&back->since, &l->side[LOAD_WRITE].lat);
	lat_sub(&back->since, &back->all);
	*now = (struct look){
		.phase = look_phase_of(l),
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

const char *look_text(const struct look *now, char buf[LOOK_TEXT_MAX])
{
	char left[24] = "?", p99[LAT_TEXT_MAX] = "-";

	if (now->left_s != LOOK_UNKNOWN)
		snprintf(left, sizeof(left), "%" PRIu64, now->left_s);
	if (now->p99_ns)
		lat_text(now->p99_ns, p99);
	switch (now->phase) {
	case LOOK_RUNS:
		snprintf(buf, LOOK_TEXT_MAX, "%s s left, %" PRIu64 " IOPS, p99 %s", left, now->iops,
			 p99);
		break;
	case LOOK_READS_BACK:
		snprintf(buf, LOOK_TEXT_MAX, "reads back, %u %%, %" PRIu64 " IOPS", now->percent,
			 now->iops);
		break;
	case LOOK_ENDS:
		snprintf(buf, LOOK_TEXT_MAX, "ends, %u in flight", now->inflight);
		break;
	}
	return buf;
}
