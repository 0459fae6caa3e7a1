/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms of times: where a time is counted, and the properties of quantiles. */
#include "counter.h"
#include "unit.h"

static uint64_t state = 1;

static uint64_t next(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 33;
}

Test(hist, buckets_are_powers_of_two)
{
	cr_assert_eq(hist_bucket(0), 0);
	cr_assert_eq(hist_bucket(1), 0);
	for (unsigned b = 1; b < HIST_BUCKETS; b++) {
		cr_assert_eq(hist_bucket(1ull << b), b);
		cr_assert_eq(hist_bucket((1ull << b) - 1), b - 1);
	}
	cr_assert_eq(hist_bucket(1ull << HIST_BUCKETS), HIST_BUCKETS - 1);
	cr_assert_eq(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
}

Test(hist, nothing_counted)
{
	struct hist h = { 0 };

	cr_assert_eq(hist_total(&h), 0);
	cr_assert_eq(hist_quantile(&h, 0), 0);
	cr_assert_eq(hist_quantile(&h, 1000), 0);
}

/* Each quantile lies in the bucket of the time that has its rank, and a larger one is not
 * smaller. */
Test(hist, quantiles_are_in_the_right_bucket)
{
	enum { N = 999 };

	for (unsigned round = 0; round < 50; round++) {
		struct hist h = { 0 };
		static uint64_t times[N];
		uint64_t last = 0;

		for (unsigned i = 0; i < N; i++) {
			uint64_t t = 2 + next() % (2ull << next() % 30), at = i;

			hist_count(&h, t);
			for (; at && times[at - 1] > t; at--)
				times[at] = times[at - 1];
			times[at] = t;
		}
		cr_assert_eq(hist_total(&h), N);
		for (unsigned permille = 1; permille <= 1000; permille++) {
			uint64_t q = hist_quantile(&h, permille);
			uint64_t t = times[((uint64_t)N * permille + 999) / 1000 - 1];
			unsigned b = hist_bucket(t);

			cr_assert_geq(q, last);
			cr_assert(q >= 1ull << b && q <= 2ull << b, "%u: %llu, but %llu", permille,
				  (unsigned long long)q, (unsigned long long)t);
			last = q;
		}
	}
}

Test(hist, one_time)
{
	struct hist h = { 0 };

	hist_count(&h, 1 << 20);
	for (unsigned permille = 1; permille <= 1000; permille++) {
		uint64_t q = hist_quantile(&h, permille);

		cr_assert(q >= 1 << 20 && q <= 2 << 20);
	}
}

Test(hist, what_was_added_can_be_taken_away)
{
	struct hist a = { 0 }, b = { 0 }, sum = { 0 };

	for (unsigned i = 0; i < 1000; i++) {
		hist_count(&a, next());
		hist_count(&b, next() << 20);
	}
	hist_add(&sum, &a, 1);
	hist_add(&sum, &b, 1);
	cr_assert_eq(hist_total(&sum), 2000);
	cr_assert_eq(counter_get(&sum.sum_ns), counter_get(&a.sum_ns) + counter_get(&b.sum_ns));
	hist_add(&sum, &b, -1);
	expect_bytes(&sum, &a, sizeof(sum), "sum");
	hist_add(&sum, &a, -1);
	cr_assert_eq(hist_total(&sum), 0);
}

Test(io_stat, counts_and_sums)
{
	struct io_stat stat = { 0 }, sum = { 0 };
	const struct io_stat_count *all = &sum.op[IO_STAT_WRITE];

	io_stat_count(&stat.op[IO_STAT_WRITE], 0, 512, 3);
	io_stat_count(&stat.op[IO_STAT_WRITE], -5, 4096, 4);
	io_stat_add(&sum, &stat, 2);
	cr_assert_eq(counter_get(&all->count), 4);
	cr_assert_eq(counter_get(&all->bytes), 1024);
	cr_assert_eq(counter_get(&all->errors), 2);
	cr_assert_eq(counter_get(&all->latency.sum_ns), 14);
}

Test(hist, sum_of_all_times)
{
	struct hist h = { 0 };

	hist_count(&h, 3);
	hist_count_shared(&h, UINT64_C(1) << 50);
	cr_assert_eq(counter_get(&h.sum_ns), (UINT64_C(1) << 50) + 3);
}
