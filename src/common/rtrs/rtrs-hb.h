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
/* Over transports of our own, where no kernel is the peer: a dead path is lost within 3 s, and
 * 1,000 idle clients cost a server less of a processor than it gets beside 40 busy threads
 * (doc/decisions.md D10). */
#define RTRS_HB_INTERVAL_OWN_MS 750u
#define RTRS_HB_MISSED_OWN_MAX 2u

struct rtrs_hb {
	atomic_uint missed;
	uint32_t interval_ms, missed_max;
	uint32_t patience;		/* silent ticks in front of an HB_MSG */
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

/* When a peer is asked for a sign of life, and when it is dead. */
struct rtrs_hb_conf {
	uint32_t interval_ms, missed_max;
	/* Ask at the first silent tick (0), or at the second (1): a peer that asks at its first one
	 * gives a sign of life by that. */
	uint32_t patience;
};

/* Begin at @now_ms: a tick each interval, and RTRS_HB_DEAD after more than .missed_max ticks
 * without a sign of life. */
void rtrs_hb_start(struct rtrs_hb *hb, uint64_t now_ms, const struct rtrs_hb_conf *conf);
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

/* The heartbeats of a path: what was given or, where that is 0, the default of its transport, which
 * the kernel has, too, or not (@own). */
static inline struct rtrs_hb_conf rtrs_hb_conf(unsigned interval_ms, unsigned missed_max, bool own)
{
	return (struct rtrs_hb_conf){
		.interval_ms = interval_ms ? interval_ms :
			       own ? RTRS_HB_INTERVAL_OWN_MS : RTRS_HB_INTERVAL_MS,
		.missed_max = missed_max ? missed_max :
			      own ? RTRS_HB_MISSED_OWN_MAX : RTRS_HB_MISSED_MAX,
	};
}

/* A transport that notices, on any connection of the path, that the peer says nothing ends the path
 * after so long.  A floor lets packets that were lost be sent again. */
static inline unsigned rtrs_hb_silence_ms(const struct rtrs_hb_conf *conf)
{
	return MAX(conf->interval_ms * (conf->missed_max + 1), RTRS_HB_SILENCE_LEAST_MS);
}

/* Note a sign of life: a message on any connection of the path.  Any thread. */
static inline void rtrs_hb_rx(struct rtrs_hb *hb)
{
	if (atomic_load_explicit(&hb->missed, memory_order_relaxed))
		atomic_store_explicit(&hb->missed, 0, memory_order_relaxed);
}

#endif
