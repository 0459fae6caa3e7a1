/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat: doc/protocol.md 5. */
#include "unit.h"

#include "rtrs-hb.h"

static enum rtrs_hb_action tick_due(struct rtrs_hb *hb)
{
	return rtrs_hb_tick(hb, hb->next_ms);
}

Test(rtrs_hb, silent_peer_is_dead_after_35_s)
{
	const struct rtrs_hb_conf conf = { RTRS_HB_INTERVAL_MS, RTRS_HB_MISSED_MAX, 0 };
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 1000, &conf);
	cr_assert_eq(hb.next_ms, 6000);
	cr_assert_eq(rtrs_hb_tick(&hb, 5999), RTRS_HB_NONE);
	cr_assert_eq(hb.next_ms, 6000, "not due, not advanced");
	cr_assert_eq(rtrs_hb_tick(&hb, 6000), RTRS_HB_SEND);
	for (uint64_t t = 11000; t <= 31000; t += 5000)
		cr_assert_eq(rtrs_hb_tick(&hb, t), RTRS_HB_NONE, "%llu", (unsigned long long)t);
	cr_assert_eq(hb.next_ms, 36000);
	cr_assert_eq(rtrs_hb_tick(&hb, 36000), RTRS_HB_DEAD);
}

Test(rtrs_hb, anything_received_starts_anew)
{
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 0, &(struct rtrs_hb_conf){ 5000, 5, 0 });
	for (unsigned round = 0; round < 20; round++) {
		cr_assert_eq(tick_due(&hb), RTRS_HB_SEND, "round %u", round);
		for (unsigned i = 0; i < 5; i++)
			cr_assert_eq(tick_due(&hb), RTRS_HB_NONE, "round %u", round);
		rtrs_hb_rx(&hb);
	}
	cr_assert_eq(atomic_load(&hb.missed), 0);
}

Test(rtrs_hb, missed_max)
{
	static const uint32_t maxima[] = { 0, 1, 5, 100 };

	for_each_case(max, maxima) {
		struct rtrs_hb hb;

		rtrs_hb_start(&hb, 0, &(struct rtrs_hb_conf){ 10, *max, 0 });
		cr_assert_eq(tick_due(&hb), RTRS_HB_SEND);
		for (uint32_t i = 0; i < *max; i++)
			cr_assert_eq(tick_due(&hb), RTRS_HB_NONE, "max %u", *max);
		cr_assert_eq(tick_due(&hb), RTRS_HB_DEAD, "max %u", *max);
	}
}

Test(rtrs_hb, latency)
{
	struct rtrs_hb hb;
	unsigned n;

	rtrs_hb_start(&hb, 0, &(struct rtrs_hb_conf){ 5000, 5, 0 });
	rtrs_hb_ack(&hb, 100);
	cr_assert_eq(atomic_load(&hb.latency_ns), 0,
		     "an answer that nobody asked for tells nothing");
	n = rtrs_hb_sent(&hb, 5000);
	cr_assert_not(rtrs_hb_acked(&hb, n));
	rtrs_hb_ack(&hb, 5007);
	cr_assert(rtrs_hb_acked(&hb, n));
	cr_assert_eq(atomic_load(&hb.latency_ns), 7);
	rtrs_hb_ack(&hb, 9000);
	cr_assert_eq(atomic_load(&hb.latency_ns), 7, "the second answer to one question");
}

Test(rtrs_hb, an_answer_belongs_to_the_oldest_question)
{
	struct rtrs_hb hb;
	unsigned first, second;

	rtrs_hb_start(&hb, 0, &(struct rtrs_hb_conf){ 5000, 5, 0 });
	first = rtrs_hb_sent(&hb, 1000);
	second = rtrs_hb_sent(&hb, 2000);
	rtrs_hb_ack(&hb, 2001);
	cr_assert(rtrs_hb_acked(&hb, first));
	cr_assert_not(rtrs_hb_acked(&hb, second));
	cr_assert_eq(atomic_load(&hb.latency_ns), 0, "not that of the second");
	rtrs_hb_ack(&hb, 2500);
	cr_assert(rtrs_hb_acked(&hb, second));
	cr_assert_eq(atomic_load(&hb.latency_ns), 500);
}

/* The thread that takes the time may have had no CPU. */
Test(rtrs_hb, one_late_look_is_no_latency)
{
	static const uint64_t took[] = { 300, 900000, 280, 310, 500, 800000, 450 };
	struct rtrs_hb hb;
	uint64_t now = 0;

	rtrs_hb_start(&hb, 0, &(struct rtrs_hb_conf){ 5000, 5, 0 });
	for_each_case(ns, took) {
		rtrs_hb_sent(&hb, now);
		rtrs_hb_ack(&hb, now += *ns);
		cr_assert_leq(atomic_load(&hb.latency_ns), 500);
		cr_assert_geq(atomic_load(&hb.latency_ns), 280);
	}
	for (unsigned i = 0; i < RTRS_HB_SAMPLES; i++) {
		rtrs_hb_sent(&hb, now);
		rtrs_hb_ack(&hb, now += 70000);
	}
	cr_assert_eq(atomic_load(&hb.latency_ns), 70000, "it did become slower");
}

Test(rtrs_hb, a_late_tick_counts_once)
{
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 0, &(struct rtrs_hb_conf){ 5000, 5, 0 });
	cr_assert_eq(rtrs_hb_tick(&hb, 60000), RTRS_HB_SEND);
	cr_assert_eq(hb.next_ms, 65000);
	cr_assert_eq(rtrs_hb_tick(&hb, 60001), RTRS_HB_NONE);
	cr_assert_eq(atomic_load(&hb.missed), 1);
}

Test(rtrs_hb, a_peer_that_asks_is_not_asked)
{
	const struct rtrs_hb_conf conf = { 750, 2, 1 };
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 0, &conf);
	for (unsigned i = 0; i < 10; i++) {
		cr_assert_eq(tick_due(&hb), RTRS_HB_NONE);
		rtrs_hb_rx(&hb);
	}
	/* Silence: asked at the second tick, dead as early as without patience. */
	cr_assert_eq(tick_due(&hb), RTRS_HB_NONE);
	cr_assert_eq(tick_due(&hb), RTRS_HB_SEND);
	cr_assert_eq(tick_due(&hb), RTRS_HB_NONE);
	cr_assert_eq(tick_due(&hb), RTRS_HB_DEAD);
}

/* With the fewest misses that an option takes the peer is still asked, and has an interval to
 * answer. */
Test(rtrs_hb, patience_asks_in_front_of_the_end)
{
	const struct rtrs_hb_conf conf = { 750, 1, 1 };
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 0, &conf);
	cr_assert_eq(tick_due(&hb), RTRS_HB_NONE);
	cr_assert_eq(tick_due(&hb), RTRS_HB_SEND);
	cr_assert_eq(tick_due(&hb), RTRS_HB_DEAD);
}

Test(rtrs_hb, each_transport_has_a_default)
{
	const struct rtrs_hb_conf kernel = rtrs_hb_conf(0, 0, false);
	const struct rtrs_hb_conf own = rtrs_hb_conf(0, 0, true);
	const struct rtrs_hb_conf given = rtrs_hb_conf(100, 7, true);

	cr_assert_eq(kernel.interval_ms, 5000);
	cr_assert_eq(kernel.missed_max, 5);
	/* Dead at the tick behind .missed_max + 1 further ones. */
	cr_assert_leq(own.interval_ms * (own.missed_max + 2), 3000u);
	cr_assert_eq(given.interval_ms, 100);
	cr_assert_eq(given.missed_max, 7);
}
