/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat counters of one path.  Owned by the path's thread; only the missed counter is reset
 * from others.  Ends with its path; fails by answering RTRS_HB_DEAD. */
#include "rtrs-hb.h"

void rtrs_hb_start(struct rtrs_hb *hb, uint64_t now_ms, uint32_t interval_ms, uint32_t missed_max)
{
	atomic_init(&hb->missed, 0);
	hb->interval_ms = interval_ms;
	hb->missed_max = missed_max;
	hb->next_ms = now_ms + interval_ms;
	hb->sent_ms = 0;
	hb->latency_ms = 0;
}

enum rtrs_hb_action rtrs_hb_tick(struct rtrs_hb *hb, uint64_t now_ms)
{
	if (now_ms < hb->next_ms)
		return RTRS_HB_NONE;
	/* From now, not from the deadline: a thread that was held up must not tick several times in
	 * a row and so declare a peer dead that had no time to answer. */
	hb->next_ms = now_ms + hb->interval_ms;

	if (atomic_load_explicit(&hb->missed, memory_order_relaxed) > hb->missed_max)
		return RTRS_HB_DEAD;
	if (atomic_fetch_add_explicit(&hb->missed, 1, memory_order_relaxed))
		return RTRS_HB_NONE;
	hb->sent_ms = now_ms;
	return RTRS_HB_SEND;
}

void rtrs_hb_ack(struct rtrs_hb *hb, uint64_t now_ms)
{
	if (!hb->sent_ms)	/* nobody asked */
		return;
	hb->latency_ms = now_ms - hb->sent_ms;
	hb->sent_ms = 0;
}
