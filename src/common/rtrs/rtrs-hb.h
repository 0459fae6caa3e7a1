/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat of one path, doc/protocol.md 5.  Pure: time comes in, an action goes out.  Owner:
 * the thread that owns the path, except rtrs_hb_rx() (any thread). */
#ifndef RTRS_HB_H
#define RTRS_HB_H

#include <stdatomic.h>
#include <stdint.h>

#include "rtrs-proto.h"

struct rtrs_hb {
	atomic_uint missed;
	uint32_t interval_ms, missed_max;
	uint64_t next_ms;		/* next tick */
	uint64_t sent_ms;		/* last HB_MSG, 0 when it was acknowledged */
	uint64_t latency_ms;		/* of the last acknowledged one */
};

enum rtrs_hb_action {
	RTRS_HB_NONE,			/* not due, or one is still unanswered */
	RTRS_HB_SEND,			/* send HB_MSG on connection 0 */
	RTRS_HB_DEAD,			/* more than missed_max missed: fail the path */
};

void rtrs_hb_start(struct rtrs_hb *hb, uint64_t now_ms, uint32_t interval_ms, uint32_t missed_max);
/* To be called at or after hb->next_ms; advances it. */
enum rtrs_hb_action rtrs_hb_tick(struct rtrs_hb *hb, uint64_t now_ms);
void rtrs_hb_ack(struct rtrs_hb *hb, uint64_t now_ms);

/* Anything was received on any connection of the path.  Any thread. */
static inline void rtrs_hb_rx(struct rtrs_hb *hb)
{
	if (atomic_load_explicit(&hb->missed, memory_order_relaxed))
		atomic_store_explicit(&hb->missed, 0, memory_order_relaxed);
}

#endif
