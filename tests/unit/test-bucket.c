/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates, on a clock that the test owns. */
#include <config.h>

#include <inttypes.h>

#include "clock.h"
#include "srv-limit.h"
#include "unit.h"
#include "util.h"

#define SECOND UINT64_C(1000000000)
#define STARTS 4096

/* Requests that a bucket has let go: time, and all units until then without and with the last. */
static struct start {
	uint64_t at_ns, before, after;
} starts[STARTS];

static uint64_t seed;

/* A number below @n. */
static uint64_t draw(uint64_t n)
{
	return random_next(&seed) % n;
}

/* Have @n requests of up to @most units come as fast as @b lets them go, but for pauses.  Returns
 * the time of the last. */
static uint64_t run(struct bucket *b, unsigned n, uint32_t most, uint64_t now_ns, bool pauses)
{
	uint64_t units = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t want = (uint32_t)draw(most) + 1;

		if (pauses && !draw(16))
			now_ns += draw(4 * b->burst_ns + 4 * SECOND / b->rate);
		now_ns = MAX(now_ns, bucket_ready_ns(b));
		bucket_take(b, want, now_ns);
		starts[i] = (struct start){ now_ns, units, units + want };
		units += want;
	}
	return now_ns;
}

/* True if @units are more than @rate for @ns, and a unit for rounding. */
static bool too_many(uint64_t units, uint64_t rate, uint64_t ns)
{
	return (unsigned __int128)(units ? units - 1 : 0) * SECOND >
	       (unsigned __int128)rate * ns;
}

static const uint64_t rates[] = { 1, 2, 3, 7, 99, 1000, 4096, 65537, 999999, 1000000 };
static const uint64_t bursts[] = { SECOND / 10, SECOND, 10 * SECOND, 3600 * SECOND };

/* Over any window the average is exceeded by the burst and the last request at most. */
Test(bucket, no_window_has_more_than_the_burst)
{
	for_each_case(rate, rates) {
		for_each_case(burst, bursts) {
			struct bucket b = { 0 };
			unsigned n = 600;

			seed = *rate;
			bucket_set(&b, *rate, *burst, 50000 * SECOND);
			run(&b, n, *rate > 1000 ? (uint32_t)*rate / 50 : 3, 50000 * SECOND, true);
			for (unsigned i = 0; i < n; i++) {
				for (unsigned j = i; j < n; j++)
					cr_assert(!too_many(starts[j].before - starts[i].before,
							    *rate, starts[j].at_ns -
							    starts[i].at_ns + *burst),
						  "%" PRIu64 "/s, burst %" PRIu64 ": %u to %u",
						  *rate, *burst, i, j);
			}
		}
	}
}

/* Requests that always wait get all of the rate: no nanosecond is lost by rounding. */
Test(bucket, the_average_is_reached)
{
	for_each_case(rate, rates) {
		struct bucket b = { 0 };
		uint64_t begin = 10 * SECOND, end, units;

		seed = 1;
		bucket_set(&b, *rate, SECOND / 10, begin);
		end = run(&b, STARTS, 5, begin, false);
		units = starts[STARTS - 1].before;
		cr_assert(!too_many(*rate * (end - begin) / SECOND, units, SECOND),
			  "%" PRIu64 "/s: %" PRIu64 " units in %" PRIu64 " ns", *rate, units,
			  end - begin);
	}
}

/* Units that were not used are there at once, up to a burst, and only once. */
Test(bucket, a_burst_is_saved)
{
	struct bucket b = { 0 };
	uint64_t now = 1000 * SECOND;
	unsigned n = 0;

	bucket_set(&b, 100, 10 * SECOND, now);
	for (unsigned pause = 0; pause < 3; pause++) {
		now += 500 * SECOND;
		for (n = 0; bucket_ready_ns(&b) <= now; n++)
			bucket_take(&b, 1, now);
		cr_assert_eq(n, 1001);
		cr_assert_eq(bucket_ready_ns(&b), now + SECOND / 100);
	}
}

/* A machine that has just started has a clock near 0. */
Test(bucket, a_burst_is_longer_than_the_clock)
{
	struct bucket b = { 0 };
	unsigned n = 0;

	bucket_set(&b, 10, 3600 * SECOND, 2 * SECOND);
	for (; bucket_ready_ns(&b) <= 2 * SECOND; n++)
		bucket_take(&b, 1, 2 * SECOND);
	cr_assert_eq(n, 21);
}

/* The largest request goes whole, and is paid for at the lowest and the highest rate. */
Test(bucket, a_large_request_is_paid_for)
{
	struct bucket b = { 0 };

	bucket_set(&b, 4096, SECOND, 100 * SECOND);
	cr_assert_eq(bucket_take(&b, UINT32_MAX, 100 * SECOND), UINT32_MAX * SECOND / 4096);
	cr_assert_eq(bucket_ready_ns(&b), 99 * SECOND + UINT32_MAX * SECOND / 4096);
	bucket_set(&b, BUCKET_RATE_MAX, SECOND, 100 * SECOND);
	for (unsigned i = 0; i < 1000; i++)
		bucket_take(&b, UINT32_MAX, 100 * SECOND);
	cr_assert_eq(bucket_ready_ns(&b), 99 * SECOND + (uint64_t)
		     ((unsigned __int128)1000 * UINT32_MAX * SECOND / BUCKET_RATE_MAX));
}

/* The same limit again is no new burst; another limit is, and none lets all go. */
Test(bucket, set)
{
	struct bucket b = { 0 };

	cr_assert_eq(bucket_ready_ns(&b), 0);
	cr_assert_eq(bucket_take(&b, 1000, SECOND), 0);
	bucket_set(&b, 1, SECOND / 10, 5 * SECOND);
	bucket_take(&b, 1, 5 * SECOND);
	cr_assert_eq(bucket_ready_ns(&b), 5 * SECOND + 9 * SECOND / 10);
	bucket_set(&b, 1, SECOND / 10, 5 * SECOND);
	cr_assert_eq(bucket_ready_ns(&b), 5 * SECOND + 9 * SECOND / 10);
	bucket_set(&b, 2, SECOND / 10, 5 * SECOND);
	cr_assert_leq(bucket_ready_ns(&b), 5 * SECOND);
	bucket_take(&b, 1000, 5 * SECOND);
	bucket_set(&b, 0, SECOND / 10, 5 * SECOND);
	cr_assert_eq(bucket_ready_ns(&b), 0);
}
