/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat counters of a path.  Owned by the path's thread; other threads only reset the missed
 * counter.  Ends with its path; fails by returning RTRS_HB_DEAD. */
#include <string.h>

#include "rtrs-hb.h"
#include "util.h"

void rtrs_hb_start(struct rtrs_hb *hb, uint64_t now_ms, const struct rtrs_hb_conf *conf)
{
	atomic_init(&hb->missed, 0);
	hb->interval_ms = conf->interval_ms;
	hb->missed_max = conf->missed_max;
	hb->patience = conf->patience;
	hb->next_ms = now_ms + conf->interval_ms;
	hb->sent = hb->acked = 0;
	memset(hb->samples, 0, sizeof(hb->samples));
	atomic_init(&hb->latency_ns, 0);
}

enum rtrs_hb_action rtrs_hb_tick(struct rtrs_hb *hb, uint64_t now_ms)
{
	if (now_ms < hb->next_ms)
		return RTRS_HB_NONE;
	/* From now, not from the deadline: a thread that was held up must not tick several times in
	 * a row, and so declare dead a peer without time to answer. */
	hb->next_ms = now_ms + hb->interval_ms;

	if (atomic_load_explicit(&hb->missed, memory_order_relaxed) > hb->missed_max)
		return RTRS_HB_DEAD;
	if (atomic_fetch_add_explicit(&hb->missed, 1, memory_order_relaxed) != hb->patience)
		return RTRS_HB_NONE;
	return RTRS_HB_SEND;
}

unsigned rtrs_hb_sent(struct rtrs_hb *hb, uint64_t now_ns)
{
	hb->sent_ns = now_ns;
	return ++hb->sent;
}

void rtrs_hb_ack(struct rtrs_hb *hb, uint64_t now_ns)
{
	uint64_t least = UINT64_MAX;

	if (hb->acked == hb->sent)
		return;
	hb->acked++;
	if (hb->acked != hb->sent)	/* sent_ns is of a later HB_MSG */
		return;
	hb->samples[hb->acked % RTRS_HB_SAMPLES] = MAX(now_ns - hb->sent_ns, UINT64_C(1));
	for (unsigned i = 0; i < RTRS_HB_SAMPLES; i++)
		least = MIN(least, hb->samples[i] - 1);	/* no sample: UINT64_MAX */
	atomic_store_explicit(&hb->latency_ns, least + 1, memory_order_relaxed);
}
