/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat of one path, doc/protocol.md 5.  Pure: time comes in, an action goes out.  Owner:
 * the thread that owns the path, except rtrs_hb_rx() and @latency_ns (any thread). */
#ifndef RTRS_HB_H
#define RTRS_HB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rtrs-proto.h"

#define RTRS_HB_SAMPLES 4

struct rtrs_hb {
	atomic_uint missed;
	uint32_t interval_ms, missed_max;
	uint64_t next_ms;		/* next tick */
	unsigned sent, acked;		/* HB_MSGs; a peer acknowledges each, in order */
	uint64_t sent_ns;		/* the last one */
	/* The least of the last few: what a thread that got no CPU adds to a sample is no latency
	 * of the path.  0: no sample yet. */
	uint64_t samples[RTRS_HB_SAMPLES];
	atomic_ullong latency_ns;
};

enum rtrs_hb_action {
	RTRS_HB_NONE,			/* not due, or one is still unanswered */
	RTRS_HB_SEND,			/* send HB_MSG on connection 0 */
	RTRS_HB_DEAD,			/* more than missed_max missed: fail the path */
};

void rtrs_hb_start(struct rtrs_hb *hb, uint64_t now_ms, uint32_t interval_ms, uint32_t missed_max);
/* To be called at or after hb->next_ms; advances it. */
enum rtrs_hb_action rtrs_hb_tick(struct rtrs_hb *hb, uint64_t now_ms);
/* HB_MSG was sent: with RTRS_HB_SEND, or for its own sake.  Returns what @acked is at least when
 * that one was acknowledged (rtrs_hb_acked()). */
unsigned rtrs_hb_sent(struct rtrs_hb *hb, uint64_t now_ns);
/* HB_ACK has come.  One that nobody asked for tells nothing. */
void rtrs_hb_ack(struct rtrs_hb *hb, uint64_t now_ns);

static inline bool rtrs_hb_acked(const struct rtrs_hb *hb, unsigned sent)
{
	return (int)(hb->acked - sent) >= 0;
}

/* Anything was received on any connection of the path.  Any thread. */
static inline void rtrs_hb_rx(struct rtrs_hb *hb)
{
	if (atomic_load_explicit(&hb->missed, memory_order_relaxed))
		atomic_store_explicit(&hb->missed, 0, memory_order_relaxed);
}

#endif
