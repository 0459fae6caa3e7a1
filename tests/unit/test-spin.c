/* SPDX-License-Identifier: BSD-3-Clause */
/* When to look instead of to sleep: properties, with a clock and a CPU of the test's own. */
#include <sched.h>

#include "clock.h"
#include "spin.h"
#include "unit.h"

#define US 1000ull
#define LIMIT_US 100

static uint64_t now_ns = 1;
static uint64_t yield_ns = US;		/* what a yield takes */

uint64_t clock_now_ns(void)
{
	return now_ns;
}

int sched_yield(void)
{
	now_ns += yield_ns;
	return 0;
}

/* A wait whose answer comes after @took_ns.  Returns for how long it was looked for. */
static uint64_t wait_for(struct spin *s, uint64_t took_ns)
{
	uint64_t begin = now_ns, looked = 0;
	bool look = spin_begin(s);

	while (look && now_ns - begin < took_ns) {
		look = spin_more(s);
		looked = now_ns - begin;
	}
	now_ns = MAX(now_ns, begin + took_ns);
	spin_end(s);
	return looked;
}

static void setup(struct spin *s)
{
	spin_init(s, LIMIT_US);
	yield_ns = US;
}

Test(spin, never_without_a_limit)
{
	struct spin s;

	spin_init(&s, 0);
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(wait_for(&s, 5 * US), 0);
}

/* Of a place where nobody looked, and back. */
Test(spin, another_limit)
{
	struct spin s;

	spin_init(&s, 0);
	cr_assert_eq(wait_for(&s, 5 * US), 0);
	spin_set_limit(&s, LIMIT_US);
	cr_assert_geq(wait_for(&s, 5 * US), 4 * US);
	spin_set_limit(&s, 0);
	cr_assert_eq(wait_for(&s, 5 * US), 0);
}

Test(spin, no_longer_than_the_limit)
{
	for (uint64_t us = 1; us < 2000; us++) {
		struct spin s;

		setup(&s);
		cr_assert_leq(wait_for(&s, us * US), LIMIT_US * US);
	}
}

Test(spin, a_little_longer_than_answers_took)
{
	struct spin s;
	uint64_t looked;

	setup(&s);
	for (unsigned i = 0; i < 100; i++)
		looked = wait_for(&s, 10 * US);
	cr_assert_eq(looked, 10 * US);		/* found */
	looked = wait_for(&s, 1000 * US);	/* and one that does not come */
	cr_assert(looked >= 10 * US && looked <= 25 * US);
}

Test(spin, not_for_what_takes_long)
{
	struct spin s;
	uint64_t looked = 0;

	setup(&s);
	for (unsigned i = 0; i < 50; i++)
		wait_for(&s, 300 * US);
	for (unsigned i = 0; i < 1000; i++)
		looked += wait_for(&s, 300 * US);
	cr_assert_eq(looked, 0);
	/* It is found out without a look that answers are quick again. */
	for (unsigned i = 0; i < 50; i++)
		wait_for(&s, 20 * US);
	cr_assert_eq(wait_for(&s, 20 * US), 20 * US);
}

Test(spin, one_long_wait_does_not_end_it)
{
	struct spin s;

	setup(&s);
	for (unsigned i = 0; i < 100; i++)
		wait_for(&s, 10 * US);
	wait_for(&s, 10000000 * US);
	cr_assert_eq(wait_for(&s, 10 * US), 10 * US);
}

Test(spin, pauses_after_a_time_slice_of_another)
{
	struct spin s;
	uint64_t pause = 0, longest = 0;

	setup(&s);
	for (unsigned i = 0; i < 100; i++)
		wait_for(&s, 10 * US);
	for (unsigned round = 0; round < 20; round++) {
		uint64_t since;

		yield_ns = 3000 * US;
		cr_assert_eq(wait_for(&s, 10 * US), 3000 * US);	/* one look, and it is enough */
		yield_ns = US;
		since = now_ns;
		while (!wait_for(&s, 10 * US))
			now_ns += 100 * US;
		pause = now_ns - since;
		cr_assert_geq(pause, 1000 * US);
		longest = MAX(longest, pause);
	}
	/* It costs little: a hundredth of the time at the end, and not for ever. */
	cr_assert_gt(longest, 100 * 3000 * US);
	cr_assert_lt(longest, 2000000 * US);
	/* Those that are answered make it try sooner. */
	for (unsigned i = 0; i < 1000; i++)
		wait_for(&s, 10 * US);
	yield_ns = 3000 * US;
	wait_for(&s, 10 * US);
	yield_ns = US;
	for (pause = now_ns; !wait_for(&s, 10 * US); now_ns += 100 * US)
		;
	cr_assert_lt(now_ns - pause, 20000 * US);
}

Test(spin, pauses_when_looks_are_in_vain)
{
	struct spin s;
	unsigned looks = 0;

	setup(&s);
	/* Half of the answers are quick, so that the mean is below the limit; here each was
	 * late. */
	for (unsigned i = 0; i < 1000; i++) {
		s.mean_ns = 20 * US;
		looks += wait_for(&s, 200 * US) > 0;
	}
	cr_assert_lt(looks, 100);
	cr_assert_gt(looks, 1);
}

Test(spin, an_end_without_a_wait)
{
	struct spin s;

	setup(&s);
	for (unsigned i = 0; i < 10; i++)
		wait_for(&s, 10 * US);
	now_ns += 1000000 * US;
	spin_end(&s);
	cr_assert_eq(wait_for(&s, 10 * US), 10 * US);
}
