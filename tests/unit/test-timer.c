/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers: order, re-arming, cancelling, and handlers that do either. */
#include "clock.h"
#include "timer.h"
#include "unit.h"

struct test_timer {
	struct timer timer;
	char name;
	void (*act)(void);
};

static struct timers timers;
static struct test_timer a, b, c;
static char trace[64];
static size_t ntrace;

static void fired(struct timer *timer)
{
	struct test_timer *t = container_of(timer, struct test_timer, timer);

	cr_assert_lt(ntrace, sizeof(trace) - 1);
	trace[ntrace++] = t->name;
	if (t->act)
		t->act();
}

static void setup(void)
{
	struct test_timer *all[] = { &a, &b, &c };

	timers_init(&timers);
	memset(trace, 0, sizeof(trace));
	ntrace = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		timer_init(&all[i]->timer, fired);
		all[i]->name = (char)('a' + i);
		all[i]->act = NULL;
	}
}

TestSuite(timer, .init = setup);

Test(timer, empty)
{
	cr_assert_eq(timers_next(&timers), CLOCK_NEVER);
	timers_run(&timers, CLOCK_NEVER);
	cr_assert_str_eq(trace, "");
}

Test(timer, runs_in_order_of_time)
{
	timer_set(&timers, &a.timer, 30);
	timer_set(&timers, &b.timer, 10);
	timer_set(&timers, &c.timer, 20);
	cr_assert_eq(timers_next(&timers), 10);
	timers_run(&timers, 9);
	cr_assert_str_eq(trace, "");
	timers_run(&timers, 20);
	cr_assert_str_eq(trace, "bc");
	cr_assert_eq(timers_next(&timers), 30);
	timers_run(&timers, 100);
	cr_assert_str_eq(trace, "bca");
	cr_assert_eq(timers_next(&timers), CLOCK_NEVER);
}

Test(timer, same_time_keeps_order_of_setting)
{
	timer_set(&timers, &c.timer, 5);
	timer_set(&timers, &a.timer, 5);
	timer_set(&timers, &b.timer, 5);
	timers_run(&timers, 5);
	cr_assert_str_eq(trace, "cab");
}

Test(timer, setting_again_moves)
{
	timer_set(&timers, &a.timer, 5);
	timer_set(&timers, &b.timer, 10);
	timer_set(&timers, &a.timer, 20);
	cr_assert_eq(timers_next(&timers), 10);
	timers_run(&timers, 15);
	cr_assert_str_eq(trace, "b");
	timers_run(&timers, 20);
	cr_assert_str_eq(trace, "ba");
}

Test(timer, cancel_is_idempotent)
{
	timer_cancel(&a.timer);
	timer_set(&timers, &a.timer, 5);
	timer_cancel(&a.timer);
	timer_cancel(&a.timer);
	timers_run(&timers, 10);
	cr_assert_str_eq(trace, "");
	timer_set(&timers, &a.timer, 11);
	timers_run(&timers, 11);
	cr_assert_str_eq(trace, "a");
}

static void cancel_b(void)
{
	timer_cancel(&b.timer);
}

Test(timer, handler_cancels_another_that_is_due)
{
	a.act = cancel_b;
	timer_set(&timers, &a.timer, 1);
	timer_set(&timers, &b.timer, 1);
	timer_set(&timers, &c.timer, 1);
	timers_run(&timers, 1);
	cr_assert_str_eq(trace, "ac");
}

static void again(void)
{
	timer_set(&timers, &a.timer, 1);
}

/* A handler that sets itself for now must not keep timers_run() going for ever. */
Test(timer, handler_sets_itself_for_now)
{
	a.act = again;
	timer_set(&timers, &a.timer, 1);
	timers_run(&timers, 1);
	cr_assert_str_eq(trace, "a");
	cr_assert_eq(timers_next(&timers), 1);
	timers_run(&timers, 1);
	cr_assert_str_eq(trace, "aa");
}

static void postpone_b(void)
{
	timer_set(&timers, &b.timer, 50);
}

Test(timer, handler_postpones_another_that_is_due)
{
	a.act = postpone_b;
	timer_set(&timers, &a.timer, 1);
	timer_set(&timers, &b.timer, 2);
	timers_run(&timers, 10);
	cr_assert_str_eq(trace, "a");
	cr_assert_eq(timers_next(&timers), 50);
}
