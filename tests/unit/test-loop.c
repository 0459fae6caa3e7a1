/* SPDX-License-Identifier: BSD-3-Clause */
/* What all loops share.  Timers: order, re-arming, cancelling, and handlers that do either.  Tasks
 * and messages: each once, in order, taken back. */
#include "clock.h"
#include "loop-impl.h"
#include "unit.h"

struct test_timer {
	struct loop_timer timer;
	char name;
	void (*act)(void);
};

static struct loop loop;
static struct test_timer a, b, c;
static char trace[64];
static size_t ntrace;

static void fired(struct loop_timer *timer)
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

	memset(&loop, 0xa5, sizeof(loop));
	cr_assert_eq(loop_init(&loop), 0);
	memset(trace, 0, sizeof(trace));
	ntrace = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		loop_timer_init(&all[i]->timer, fired);
		all[i]->name = (char)('a' + i);
		all[i]->act = NULL;
	}
}

static void teardown(void)
{
	loop_fini(&loop);
}

TestSuite(loop, .init = setup, .fini = teardown);

Test(loop, no_timer)
{
	cr_assert_eq(loop_deadline(&loop), CLOCK_NEVER);
	loop_run_timers(&loop, CLOCK_NEVER);
	cr_assert_str_eq(trace, "");
}

Test(loop, timers_run_in_order_of_time)
{
	loop_timer_set(&loop, &a.timer, 30);
	loop_timer_set(&loop, &b.timer, 10);
	loop_timer_set(&loop, &c.timer, 20);
	cr_assert_eq(loop_deadline(&loop), 10);
	loop_run_timers(&loop, 9);
	cr_assert_str_eq(trace, "");
	loop_run_timers(&loop, 20);
	cr_assert_str_eq(trace, "bc");
	cr_assert_eq(loop_deadline(&loop), 30);
	loop_run_timers(&loop, 100);
	cr_assert_str_eq(trace, "bca");
	cr_assert_eq(loop_deadline(&loop), CLOCK_NEVER);
}

Test(loop, timers_of_one_time_keep_order_of_setting)
{
	loop_timer_set(&loop, &c.timer, 5);
	loop_timer_set(&loop, &a.timer, 5);
	loop_timer_set(&loop, &b.timer, 5);
	loop_run_timers(&loop, 5);
	cr_assert_str_eq(trace, "cab");
}

Test(loop, setting_a_timer_again_moves)
{
	loop_timer_set(&loop, &a.timer, 5);
	loop_timer_set(&loop, &b.timer, 10);
	loop_timer_set(&loop, &a.timer, 20);
	cr_assert_eq(loop_deadline(&loop), 10);
	loop_run_timers(&loop, 15);
	cr_assert_str_eq(trace, "b");
	loop_run_timers(&loop, 20);
	cr_assert_str_eq(trace, "ba");
}

Test(loop, cancelling_is_idempotent)
{
	loop_timer_cancel(&a.timer);
	loop_timer_set(&loop, &a.timer, 5);
	loop_timer_cancel(&a.timer);
	loop_timer_cancel(&a.timer);
	loop_run_timers(&loop, 10);
	cr_assert_str_eq(trace, "");
	loop_timer_set(&loop, &a.timer, 11);
	loop_run_timers(&loop, 11);
	cr_assert_str_eq(trace, "a");
}

static void cancel_b(void)
{
	loop_timer_cancel(&b.timer);
}

Test(loop, handler_cancels_another_that_is_due)
{
	a.act = cancel_b;
	loop_timer_set(&loop, &a.timer, 1);
	loop_timer_set(&loop, &b.timer, 1);
	loop_timer_set(&loop, &c.timer, 1);
	loop_run_timers(&loop, 1);
	cr_assert_str_eq(trace, "ac");
}

static void again(void)
{
	loop_timer_set(&loop, &a.timer, 1);
}

/* A handler that sets itself for now must not keep loop_run_timers() going for ever. */
Test(loop, handler_sets_itself_for_now)
{
	a.act = again;
	loop_timer_set(&loop, &a.timer, 1);
	loop_run_timers(&loop, 1);
	cr_assert_str_eq(trace, "a");
	cr_assert_eq(loop_deadline(&loop), 1);
	loop_run_timers(&loop, 1);
	cr_assert_str_eq(trace, "aa");
}

static void postpone_b(void)
{
	loop_timer_set(&loop, &b.timer, 50);
}

Test(loop, handler_postpones_another_that_is_due)
{
	a.act = postpone_b;
	loop_timer_set(&loop, &a.timer, 1);
	loop_timer_set(&loop, &b.timer, 2);
	loop_run_timers(&loop, 10);
	cr_assert_str_eq(trace, "a");
	cr_assert_eq(loop_deadline(&loop), 50);
}

/* ---- messages ---- */

struct test_msg {
	struct loop_msg msg;
	char name;
	void (*act)(void);
};

static struct test_msg x, y, z;

static void arrived(struct loop_msg *msg)
{
	struct test_msg *m = container_of(msg, struct test_msg, msg);

	cr_assert_lt(ntrace, sizeof(trace) - 1);
	trace[ntrace++] = m->name;
	if (m->act)
		m->act();
}

static void post_all(void)
{
	struct test_msg *all[] = { &x, &y, &z };

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		loop_msg_init(&all[i]->msg, arrived);
		all[i]->name = (char)('x' + i);
		loop_post(&loop, &all[i]->msg);
	}
}

Test(loop, messages_run_once_in_order)
{
	post_all();
	loop_post(&loop, &y.msg);
	loop_post(&loop, &x.msg);
	cr_assert(!loop_inbox_empty(&loop));
	cr_assert_eq(loop_run_inbox(&loop), 3);
	cr_assert_str_eq(trace, "xyz");
	cr_assert(loop_inbox_empty(&loop));
	loop_post(&loop, &x.msg);
	cr_assert_eq(loop_run_inbox(&loop), 1);
	cr_assert_str_eq(trace, "xyzx");
}

Test(loop, message_taken_back)
{
	post_all();
	loop_unpost(&loop, &y.msg);
	loop_unpost(&loop, &y.msg);
	loop_post(&loop, &x.msg);
	cr_assert_eq(loop_run_inbox(&loop), 2);
	cr_assert_str_eq(trace, "xz");
	loop_post(&loop, &y.msg);
	loop_unpost(&loop, &y.msg);
	cr_assert(loop_inbox_empty(&loop));
	cr_assert_eq(loop_run_inbox(&loop), 0);
	cr_assert_str_eq(trace, "xz");
}

static void unpost_y_post_x(void)
{
	loop_post(&loop, &x.msg);
	loop_unpost(&loop, &y.msg);
}

Test(loop, message_takes_back_another_and_posts_itself)
{
	x.act = unpost_y_post_x;
	post_all();
	/* the place of y is taken by the second x */
	cr_assert_eq(loop_run_inbox(&loop), 3);
	cr_assert_str_eq(trace, "xzx");
	x.act = NULL;
	cr_assert_eq(loop_run_inbox(&loop), 1);
	cr_assert_str_eq(trace, "xzxx");
}

/* ---- tasks ---- */

static struct loop_task task, other;

static void run_task(struct loop_task *t)
{
	cr_assert_lt(ntrace, sizeof(trace) - 1);
	trace[ntrace++] = t == &task ? 't' : 'o';
	if (t == &task)
		loop_defer(&loop, &task);
}

Test(loop, tasks_that_defer_each_other_end)
{
	loop_task_init(&task, run_task);
	loop_task_init(&other, run_task);
	loop_defer(&loop, &task);
	loop_defer(&loop, &other);
	loop_before_sleep(&loop, &other);
	loop_run_tasks(&loop);
	cr_assert_str_eq(trace, "tott");
	loop_undefer(&task);
	loop_before_sleep(&loop, &other);
	loop_run_tasks(&loop);
	cr_assert_str_eq(trace, "tott");
	loop_run_sleep_tasks(&loop);
	cr_assert_str_eq(trace, "totto");
}

static void run_next(struct loop_task *t)
{
	run_task(&other);
	loop_defer_next(&loop, t);
	loop_defer_next(&loop, t);
	loop_defer(&loop, t);		/* waits already */
}

/* Once in each pass, and there is work for the next pass. */
Test(loop, a_task_of_the_next_pass)
{
	loop_task_init(&task, run_next);
	loop_defer_next(&loop, &task);
	cr_assert(list_empty(&loop.tasks));
	loop_run_tasks(&loop);
	cr_assert_str_eq(trace, "");
	for (unsigned i = 1; i < 4; i++) {
		cr_assert(!list_empty(&loop.tasks));
		loop_run_tasks(&loop);
		cr_assert_eq(strlen(trace), i);
	}
	loop_undefer(&task);
	loop_run_tasks(&loop);
	cr_assert_str_eq(trace, "ooo");
	cr_assert(list_empty(&loop.tasks));
}
