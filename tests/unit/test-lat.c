/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of rtrs-bench: a quantile is that of the times themselves, but for a 64th; and what it
 * shows while it runs, of the time since the previous look. */
#include <stdlib.h>

#include "bench.h"
#include "unit.h"

enum { N = 1999 };

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

Test(lat, nothing_counted)
{
	static struct lat l;

	cr_assert_eq(lat_quantile(&l, 500), 0);
	cr_assert_eq(lat_mean(&l), 0);
}

Test(lat, one_time_is_all_of_them)
{
	static const uint64_t times[] = { 0, 1, 63, 64, 65, 127, 128, 999999,
					  86400ull * 1000000000 };

	for (unsigned i = 0; i < ARRAY_SIZE(times); i++) {
		static struct lat l;

		l = (struct lat){ 0 };
		lat_count(&l, times[i]);
		cr_assert_eq(lat_quantile(&l, 0), times[i]);
		cr_assert_eq(lat_quantile(&l, 1000), times[i]);
		cr_assert_eq(lat_mean(&l), times[i]);
	}
}

/* Of the time that has the rank; never less, and at most a 64th more. */
Test(lat, quantiles_are_right_but_for_a_64th)
{
	static const unsigned permilles[] = { 0, 1, 250, 500, 900, 990, 999, 1000 };

	srandom(1);
	for (unsigned round = 0; round < 30; round++) {
		static uint64_t times[N];
		static struct lat l;
		uint64_t sum = 0;

		l = (struct lat){ 0 };
		for (unsigned i = 0; i < N; i++) {
			/* From nanoseconds to minutes. */
			times[i] = (uint64_t)random() << (random() % 8) >> (random() % 32);
			lat_count(&l, times[i]);
			sum += times[i];
		}
		qsort(times, N, sizeof(*times), by_size);
		for (unsigned i = 0; i < ARRAY_SIZE(permilles); i++) {
			unsigned rank = (N * permilles[i] + 999) / 1000;
			uint64_t is = times[rank ? rank - 1 : 0],
				told = lat_quantile(&l, permilles[i]);

			cr_assert(told >= is && told - is <= is / 64,
				  "%u of 1000: %llu is told as %llu", permilles[i],
				  (unsigned long long)is, (unsigned long long)told);
		}
		cr_assert_eq(lat_mean(&l), sum / N);
		cr_assert_eq(l.count, N);
	}
}

Test(lat, what_was_added_is_taken_away_again)
{
	static struct lat a, b;

	for (uint64_t ns = 1; ns < 1000000; ns *= 3) {
		lat_count(&a, ns);
		lat_count(&b, 1000 * ns);
	}
	lat_add(&b, &a);
	cr_assert_eq(b.count, 2 * a.count);
	lat_sub(&b, &a);
	cr_assert_eq(b.count, a.count);
	cr_assert_eq(lat_mean(&b), 1000 * lat_mean(&a) + 1000 * (a.sum_ns % a.count) / a.count);
	cr_assert_gt(lat_quantile(&b, 0), 999);
	lat_sub(&b, &b);
	cr_assert_eq(lat_quantile(&b, 990), 0);
}

Test(lat, texts)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {
		{ 0, "0.0 us" }, { 1234, "1.2 us" }, { 812500, "812 us" }, { 9999499, "9999 us" },
		{ 10000000, "10.0 ms" }, { 9999499999, "9999 ms" }, { 10000000000, "10.0 s" },
		{ UINT64_MAX, "18446744074 s" },
	};

	for_each_case(c, cases) {
		char buf[LAT_TEXT_MAX];

		cr_assert_str_eq(lat_text(c->ns, buf), c->want);
	}
}

/* ---- looks ---- */

#define S_NS UINT64_C(1000000000)

static struct load load;
static struct look_back back;

/* @n IOs of @ns have ended. */
static void ended(unsigned dir, unsigned n, uint64_t ns)
{
	for (unsigned i = 0; i < n; i++)
		lat_count(&load.side[dir].lat, ns);
	load.side[dir].ios += n;
	load.begun += n;
}

static const char *text_at(uint64_t at_ns)
{
	static char buf[LOOK_TEXT_MAX];
	struct look now;

	lat_look(&now, &back, &load, load.began_ns + at_ns);
	return lat_look_text(&now, buf);
}

static void begin(void)
{
	load = (struct load){ .began_ns = 12345 * S_NS, .begun = 4, .inflight = 4,
			      .phase = LOAD_RUNS };
	back = (struct look_back){ 0 };
}

Test(look, each_look_is_of_its_second, .init = begin)
{
	load.conf.runtime_s = 100;
	ended(LOAD_READ, 1000, 2000000);
	cr_assert_str_eq(text_at(S_NS), "99 s left, 1000 IOPS, p99 2000 us");
	/* Both directions; the slow ones of before are no more. */
	ended(LOAD_READ, 100, 1000);
	ended(LOAD_WRITE, 100, 1000);
	cr_assert_str_eq(text_at(3 * S_NS), "97 s left, 100 IOPS, p99 1.0 us");
	cr_assert_str_eq(text_at(4 * S_NS - 1000), "96 s left, 0 IOPS, p99 -");
	cr_assert_str_eq(text_at(101 * S_NS), "0 s left, 0 IOPS, p99 -");
}

Test(look, time_left_by_the_number_of_ios, .init = begin)
{
	load.conf.ios = 5000;
	cr_assert_str_eq(text_at(S_NS), "? s left, 0 IOPS, p99 -");
	ended(LOAD_WRITE, 1000, 1000);
	cr_assert_str_eq(text_at(2 * S_NS), "4 s left, 1000 IOPS, p99 1.0 us");
	/* The sooner end. */
	load.conf.runtime_s = 5;
	ended(LOAD_WRITE, 1000, 1000);
	cr_assert_str_eq(text_at(3 * S_NS), "2 s left, 1000 IOPS, p99 1.0 us");
}

Test(look, phases, .init = begin)
{
	load.nblocks = 200;
	load.next = 50;
	load.phase = LOAD_READS_BACK;
	load.begun += 700;
	cr_assert_str_eq(text_at(S_NS), "reads back, 25 %, 700 IOPS");
	load.next = 201;
	cr_assert_str_eq(text_at(2 * S_NS), "reads back, 100 %, 0 IOPS");
	load.phase = LOAD_ENDS;
	cr_assert_str_eq(text_at(3 * S_NS), "ends, 4 in flight");
}
