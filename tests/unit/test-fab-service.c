/* SPDX-License-Identifier: BSD-3-Clause */
/* The service of a connection, on a loop whose passes the test makes, and on a provider that does
 * what the test says. */
#include <errno.h>
#include <poll.h>

#include "unit.h"

#include "fab-service.h"
#include "fsm-rules.h"
#include "loop-impl.h"

#define BUDGET 4

/* ---- a loop ---- */

static struct loop loop;
static uint64_t now_ms;
static int watch_rc;
static struct loop_watch *closing;	/* unwatched, and not told yet */

uint64_t clock_now_ms(void)
{
	return now_ms;
}

int loop_watch(struct loop *l, struct loop_watch *w)
{
	if (!watch_rc)
		w->loop = l;
	return watch_rc;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	w->events = events;
}

void loop_unwatch(struct loop_watch *w)
{
	if (w->loop && w->closed)
		closing = w;
	w->loop = NULL;
}

static void pass(void)
{
	struct loop_watch *w = closing;

	closing = NULL;
	loop_run_timers(&loop, now_ms);
	loop_run_tasks(&loop);
	if (w)
		w->closed(w);
}

/* ---- a provider ---- */

static struct {
	int ready;			/* completions; -1: drained */
	bool disconnected;
	int rearm;
	char calls[64];			/* Poll, Arm, before_Sleep(), Ended(), Gone() */
} st;

static void called(char c)
{
	size_t len = strlen(st.calls);

	cr_assert_lt(len + 1, sizeof(st.calls));
	st.calls[len] = c;
}

static void expect_calls(const char *want)
{
	cr_assert_str_eq(st.calls, want);
	memset(st.calls, 0, sizeof(st.calls));
}

static int dev_arm(struct fab_conn *conn, short *events)
{
	called('A');
	*events = POLLIN;
	return st.ready > 0;
}

static int dev_need_rearm(const struct fab_conn *conn)
{
	return st.rearm;
}

static void dev_disconnect(struct fab_conn *conn, const char *cause)
{
	st.disconnected = true;
}

static struct fab_provider dev = { .arm = dev_arm, .need_rearm = dev_need_rearm,
				   .disconnect = dev_disconnect };
static struct fab_conn conn = { .ops = &dev, .fd = 7 };

/* ---- an owner ---- */

static int owner_poll(struct fab_service *s, int budget)
{
	int n = st.ready < 0 ? -ENOTCONN : MIN(st.ready, budget);

	called('P');
	cr_assert_eq(budget, BUDGET);
	if (n > 0)
		st.ready -= n;
	return n;
}

static bool owner_before_sleep(struct fab_service *s)
{
	called('S');
	return fab_service_arm(s);
}

static void owner_ended(struct fab_service *s)
{
	cr_assert_not(fab_service_runs(s));
	called('E');
}

static void owner_gone(struct fab_service *s)
{
	cr_assert(fab_service_may_begin(s) && !s->watch.loop);
	called('G');
}

static const struct fab_service_ops plain = { .poll = owner_poll, .budget = BUDGET,
					      .ended = owner_ended, .gone = owner_gone };
static const struct fab_service_ops late = { .poll = owner_poll, .budget = BUDGET,
					     .before_sleep = owner_before_sleep,
					     .ended = owner_ended };

static struct fab_service s;

/* Begin a service of @ops, and make the first pass. */
static void begin(const struct fab_service_ops *ops, bool dear)
{
	memset(&st, 0, sizeof(st));
	dev.arm_is_dear = dear;
	watch_rc = 0;
	cr_assert_eq(loop_init(&loop), 0);
	fab_service_init(&s, ops);
	cr_assert_eq(fab_service_begin(&s, &loop, &conn), 0);
	expect_calls("");
	pass();
}

Test(fab_service, the_table) { fsm_rules(&fab_service_fsm); }

/* Between two polls lies an arm, unless the first has left something behind. */
Test(fab_service, polls_and_arms)
{
	begin(&plain, false);
	expect_calls("APA");
	st.ready = BUDGET - 1;
	cr_assert_not(s.watch.ready(&s.watch));
	expect_calls("PA");
	st.ready = 2 * BUDGET;
	cr_assert(s.watch.ready(&s.watch));
	cr_assert(s.watch.ready(&s.watch));
	cr_assert_not(s.watch.ready(&s.watch));
	expect_calls("PPPA");
	fab_service_posted(&s);
	expect_calls("");
	st.rearm = FAB_REARM_EVENTS;
	fab_service_posted(&s);
	expect_calls("A");
}

/* Where arming is dear, it waits for the sleep; a poll that comes before arms, too. */
Test(fab_service, arms_before_the_sleep)
{
	begin(&plain, true);
	expect_calls("AP");
	cr_assert_not(s.watch.ready(&s.watch));
	expect_calls("AP");
	st.ready = 1;
	loop_run_sleep_tasks(&loop);
	expect_calls("A");
	pass();
	expect_calls("P");
	loop_run_sleep_tasks(&loop);
	expect_calls("A");
}

/* What the owner has put off has its turn, however much comes. */
Test(fab_service, puts_off)
{
	begin(&late, false);
	expect_calls("AP");
	st.ready = 2 * BUDGET;
	cr_assert_not(s.watch.ready(&s.watch));
	expect_calls("AP");
	loop_run_sleep_tasks(&loop);
	expect_calls("SA");
	pass();
	expect_calls("P");
	fab_service_wake(&s);
	loop_run_sleep_tasks(&loop);
	expect_calls("SA");
}

/* A device that is broken tells nobody anything. */
Test(fab_service, looks_at_a_failed_connection_each_second)
{
	begin(&plain, false);
	expect_calls("APA");
	fab_service_failed(&s);
	cr_assert_not(st.disconnected);
	now_ms += 999;
	pass();
	expect_calls("");
	for (unsigned i = 0; i < 3; i++) {
		now_ms += 1000;
		pass();
		expect_calls("PA");
	}
	st.ready = -1;
	now_ms += 1000;
	pass();
	expect_calls("PE");
	cr_assert_not(fab_service_may_begin(&s));
	fab_service_failed(&s);
	fab_service_poll_soon(&s);
	pass();
	expect_calls("G");
	now_ms += 5000;
	pass();
	loop_run_sleep_tasks(&loop);
	expect_calls("");
}

Test(fab_service, disconnects)
{
	begin(&plain, true);
	fab_service_wake(&s);
	fab_service_disconnect(&s);
	cr_assert(st.disconnected);
	st.ready = -1;
	expect_calls("AP");
	pass();
	expect_calls("APE");
	loop_run_sleep_tasks(&loop);
	pass();
	expect_calls("G");
}

/* Without a watch no closed() comes, and the timer looks. */
Test(fab_service, has_no_watch)
{
	memset(&st, 0, sizeof(st));
	cr_assert_eq(loop_init(&loop), 0);
	fab_service_init(&s, &plain);
	watch_rc = -ENOMEM;
	cr_assert_eq(fab_service_begin(&s, &loop, &conn), -ENOMEM);
	fab_service_disconnect(&s);
	pass();
	expect_calls("APA");
	st.ready = -1;
	now_ms += 1000;
	pass();
	expect_calls("PEG");
}

/* Stopped at any time, a service touches nothing, and begins again. */
Test(fab_service, stops)
{
	begin(&late, false);
	expect_calls("AP");
	fab_service_failed(&s);
	fab_service_poll_soon(&s);
	fab_service_stop(&s);
	now_ms += 5000;
	pass();
	loop_run_sleep_tasks(&loop);
	expect_calls("");
	fab_service_stop(&s);
	cr_assert_eq(fab_service_begin(&s, &loop, &conn), 0);
	st.ready = -1;
	pass();
	expect_calls("APE");
	cr_assert_not(s.watch.loop);
	fab_service_stop(&s);
	cr_assert_eq(fab_service_begin(&s, &loop, &conn), 0);
}

Test(fab_service, polls_now)
{
	begin(&plain, false);
	expect_calls("APA");
	st.ready = BUDGET + 1;
	fab_service_poll_now(&s);
	expect_calls("PPAP");
}
