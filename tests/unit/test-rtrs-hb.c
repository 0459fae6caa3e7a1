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
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 1000, RTRS_HB_INTERVAL_MS, RTRS_HB_MISSED_MAX);
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

	rtrs_hb_start(&hb, 0, 5000, 5);
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

		rtrs_hb_start(&hb, 0, 10, *max);
		cr_assert_eq(tick_due(&hb), RTRS_HB_SEND);
		for (uint32_t i = 0; i < *max; i++)
			cr_assert_eq(tick_due(&hb), RTRS_HB_NONE, "max %u", *max);
		cr_assert_eq(tick_due(&hb), RTRS_HB_DEAD, "max %u", *max);
	}
}

Test(rtrs_hb, latency)
{
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 0, 5000, 5);
	rtrs_hb_ack(&hb, 100);
	cr_assert_eq(hb.latency_ms, 0, "an answer that nobody asked for tells nothing");
	cr_assert_eq(rtrs_hb_tick(&hb, 5000), RTRS_HB_SEND);
	rtrs_hb_ack(&hb, 5007);
	cr_assert_eq(hb.latency_ms, 7);
	rtrs_hb_ack(&hb, 9000);
	cr_assert_eq(hb.latency_ms, 7, "the second answer to one question");
}

Test(rtrs_hb, a_late_tick_counts_once)
{
	struct rtrs_hb hb;

	rtrs_hb_start(&hb, 0, 5000, 5);
	cr_assert_eq(rtrs_hb_tick(&hb, 60000), RTRS_HB_SEND);
	cr_assert_eq(hb.next_ms, 65000);
	cr_assert_eq(rtrs_hb_tick(&hb, 60001), RTRS_HB_NONE);
	cr_assert_eq(atomic_load(&hb.missed), 1);
}
