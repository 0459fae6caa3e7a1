/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat of a path, doc/protocol.md 5.  Pure: time comes in, an action goes out.  Owner: the
 * thread that owns the path, except rtrs_hb_rx() and @latency_ns (any thread). */
#ifndef RTRS_HB_H
#define RTRS_HB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rtrs-proto.h"
#include "util.h"

#define RTRS_HB_SAMPLES 4
#define RTRS_HB_SILENCE_LEAST_MS 1000u

struct rtrs_hb {
	atomic_uint missed;
	uint32_t interval_ms, missed_max;
	uint64_t next_ms;		/* next tick */
	unsigned sent, acked;		/* HB_MSGs; a peer acknowledges each, in order */
	uint64_t sent_ns;		/* time of the last HB_MSG */
	/* The least of the last samples, because a thread that got no CPU makes a sample longer
	 * than the latency of the path.  0: no sample yet. */
	uint64_t samples[RTRS_HB_SAMPLES];
	atomic_ullong latency_ns;
};

enum rtrs_hb_action {
	RTRS_HB_NONE,			/* not due, or the last HB_MSG is unanswered */
	RTRS_HB_SEND,			/* send HB_MSG on connection 0 */
	RTRS_HB_DEAD,			/* more than missed_max missed: fail the path */
};

/* Begin at @now_ms: a tick each @interval_ms, and RTRS_HB_DEAD after more than @missed_max ticks
 * without a sign of life. */
void rtrs_hb_start(struct rtrs_hb *hb, uint64_t now_ms, uint32_t interval_ms, uint32_t missed_max);
/* Call at or after hb->next_ms; advances hb->next_ms. */
enum rtrs_hb_action rtrs_hb_tick(struct rtrs_hb *hb, uint64_t now_ms);
/* Count a sent HB_MSG, after RTRS_HB_SEND or at any other time.  Returns the number of this HB_MSG,
 * for rtrs_hb_acked(). */
unsigned rtrs_hb_sent(struct rtrs_hb *hb, uint64_t now_ns);
/* Count an HB_ACK and measure its latency.  An HB_ACK without an HB_MSG is ignored. */
void rtrs_hb_ack(struct rtrs_hb *hb, uint64_t now_ns);

/* True if the HB_MSG with number @sent, of rtrs_hb_sent(), has been acknowledged. */
static inline bool rtrs_hb_acked(const struct rtrs_hb *hb, unsigned sent)
{
	return (int)(hb->acked - sent) >= 0;
}

/* A transport that notices, on any connection of the path, that the peer says nothing ends the path
 * after so long.  A floor lets packets that were lost be sent again. */
static inline unsigned rtrs_hb_silence_ms(uint32_t interval_ms, uint32_t missed_max)
{
	return MAX(interval_ms * (missed_max + 1), RTRS_HB_SILENCE_LEAST_MS);
}

/* Note a sign of life: a message on any connection of the path.  Any thread. */
static inline void rtrs_hb_rx(struct rtrs_hb *hb)
{
	if (atomic_load_explicit(&hb->missed, memory_order_relaxed))
		atomic_store_explicit(&hb->missed, 0, memory_order_relaxed);
}

#endif
