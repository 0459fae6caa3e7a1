/* SPDX-License-Identifier: BSD-3-Clause */
/* The reactor: deferred work, watches with their level semantics, timers, inbox, stop. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "reactor.h"
#include "unit.h"

static struct reactor *r;
static int pair[2];
static char trace[256];

static void note(const char *what)
{
	cr_assert_lt(strlen(trace) + strlen(what) + 2, sizeof(trace));
	strcat(strcat(trace, what), " ");
}

static void setup(void)
{
	trace[0] = '\0';
	cr_assert_eq(reactor_create("test", 8, &r), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
}

static void teardown(void)
{
	reactor_destroy(r);
	close(pair[0]);
	close(pair[1]);
}

TestSuite(reactor, .init = setup, .fini = teardown, .timeout = 30);

/* ---- tasks ---- */

static struct reactor_task first, second;

static void run_first(struct reactor_task *task)
{
	note("first");
	reactor_undefer(&second);
	reactor_defer(r, &second);
	reactor_defer(r, &second);
}

static void run_second(struct reactor_task *task)
{
	note("second");
	reactor_stop(r);
}

Test(reactor, deferred_work)
{
	reactor_task_init(&first, run_first);
	reactor_task_init(&second, run_second);
	reactor_defer(r, &first);
	reactor_defer(r, &first);
	reactor_defer(r, &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "first second ");
}

/* ---- before a sleep ---- */

static struct reactor_task late, early;
static unsigned early_again, late_again;

static void run_early(struct reactor_task *task)
{
	note("early");
	if (early_again) {
		early_again--;
		reactor_defer(r, task);
	}
}

static void run_late(struct reactor_task *task)
{
	note("late");
	if (!late_again) {
		reactor_stop(r);
		return;
	}
	late_again--;
	reactor_before_sleep(r, task);
	reactor_defer(r, &early);
}

static void late_start(void)
{
	reactor_task_init(&early, run_early);
	reactor_task_init(&late, run_late);
	reactor_before_sleep(r, &late);
	reactor_before_sleep(r, &late);
}

/* However many passes that takes. */
Test(reactor, before_sleep_comes_after_all_work)
{
	late_start();
	early_again = 6;
	reactor_defer(r, &early);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "early early early early early early early late ");
}

/* Nothing else would wake the thread. */
Test(reactor, no_sleep_when_getting_ready_made_work)
{
	late_start();
	late_again = 2;
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "late early late early late ");
}

Test(reactor, before_sleep_taken_back)
{
	late_start();
	reactor_undefer(&late);
	reactor_task_init(&second, run_second);
	reactor_defer(r, &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "second ");
}

/* ---- watches ---- */

static struct reactor_watch watch;
static unsigned more;			/* ready() says so many times that there is more */
static unsigned stop_after;

static bool ready(struct reactor_watch *w)
{
	note("ready");
	if (!--stop_after)
		reactor_stop(r);
	if (!more)
		return false;
	more--;
	return true;
}

static void closed(struct reactor_watch *w)
{
	note("closed");
	reactor_stop(r);
}

static void watch_start(short events)
{
	watch = (struct reactor_watch){ .fd = pair[0], .events = events, .ready = ready,
					.closed = closed };
	cr_assert_eq(reactor_watch(r, &watch), 0);
}

static void watch_end(void)
{
	reactor_unwatch(&watch);
	cr_assert_null(strstr(trace, "closed"), "closed() ran inside reactor_unwatch()");
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_not_null(strstr(trace, "closed"));
}

static void run_until(unsigned n)
{
	stop_after = n;
	cr_assert_eq(reactor_run(r), 0);
}

static bool writable_once(struct reactor_watch *w)
{
	note("writable");
	reactor_watch_events(w, POLLIN);
	return false;
}

/* What the ring does at once is taken before. */
Test(reactor, before_sleep_comes_after_quick_io)
{
	watch_start(POLLIN | POLLOUT);		/* the socket is empty */
	watch.ready = writable_once;
	late_start();
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "writable late ");
	watch_end();
}

Test(reactor, ready_when_readable)
{
	watch_start(POLLIN);
	cr_assert_eq(write(pair[1], "x", 1), 1);
	run_until(1);
	cr_assert_str_eq(trace, "ready ");
	watch_end();
	cr_assert_str_eq(trace, "ready closed ");
}

Test(reactor, ready_again_while_there_is_more)
{
	watch_start(POLLIN);
	more = 3;
	cr_assert_eq(write(pair[1], "x", 1), 1);
	run_until(4);
	cr_assert_str_eq(trace, "ready ready ready ready ");
	watch_end();
}

/* Each new arrival is told, many times over one poll. */
Test(reactor, told_of_each_arrival)
{
	char c;

	watch_start(POLLIN);
	for (unsigned i = 0; i < 50; i++) {
		trace[0] = '\0';
		cr_assert_eq(write(pair[1], "x", 1), 1);
		run_until(1);
		cr_assert_eq(read(pair[0], &c, 1), 1);
	}
	trace[0] = '\0';
	watch_end();
}

Test(reactor, pollout_fires_while_wanted)
{
	watch_start(POLLIN);
	reactor_watch_events(&watch, POLLIN | POLLOUT);
	run_until(2);			/* writable all the time */
	reactor_watch_events(&watch, POLLIN);
	trace[0] = '\0';
	watch_end();
	cr_assert_str_eq(trace, "closed ");
}

/* What came while POLLIN was not wanted is told when it is. */
Test(reactor, arrival_while_not_wanted)
{
	struct timespec ts = { 0 };
	struct pollfd pfd;

	watch_start(0);
	cr_assert_eq(write(pair[1], "x", 1), 1);
	pfd = (struct pollfd){ .fd = pair[0], .events = POLLIN };
	cr_assert_eq(ppoll(&pfd, 1, &ts, NULL), 1);
	reactor_task_init(&second, run_second);
	reactor_defer(r, &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "second ");
	reactor_watch_events(&watch, POLLIN);
	run_until(1);
	cr_assert_str_eq(trace, "second ready ");
	watch_end();
}

Test(reactor, peer_closes)
{
	watch_start(POLLIN);
	shutdown(pair[1], SHUT_RDWR);
	run_until(1);
	watch_end();
}

/* Reads once each time it is called, and takes a short read for the end of what is there. */
static bool ready_reads(struct reactor_watch *w)
{
	char buf[8];
	ssize_t n = read(w->fd, buf, sizeof(buf));

	note(n > 0 ? "data" : "end");
	if (n <= 0)
		reactor_stop(r);
	return n == sizeof(buf);
}

/* One event tells of data and of the end behind it. */
Test(reactor, peer_closes_behind_data)
{
	for (size_t len = 1; len <= 8; len += 7) {
		trace[0] = '\0';
		watch_start(POLLIN);
		watch.ready = ready_reads;
		cr_assert_eq(write(pair[1], "12345678", len), (ssize_t)len);
		shutdown(pair[1], SHUT_WR);
		cr_assert_eq(reactor_run(r), 0);
		cr_assert_eq(strncmp(trace, "data end ", 9), 0, "%s", trace);
		watch_end();
		teardown();
		setup();
	}
}

static unsigned errors_wanted;

static bool ready_meets_errors(struct reactor_watch *w)
{
	char c;

	if (read(w->fd, &c, 1) == 1) {
		note("data");
		reactor_stop(r);
	} else if (errors_wanted && !--errors_wanted) {
		reactor_stop(r);
	}
	return false;
}

/* Watch a descriptor that no poll takes, until it has been tried so often. */
static void watch_refused(unsigned times)
{
	int fd = dup(pair[0]);

	watch = (struct reactor_watch){ .fd = fd, .events = POLLIN, .ready = ready_meets_errors,
					.closed = closed };
	close(fd);
	cr_assert_eq(reactor_watch(r, &watch), 0);
	errors_wanted = times;
	cr_assert_eq(reactor_run(r), 0);
}

/* As when the kernel has no memory for a while: what comes later is told, however often it was refused. */
Test(reactor, refused_polls)
{
	for (unsigned times = 1; times < 5; times++) {
		trace[0] = '\0';
		watch_refused(times);
		cr_assert_eq(dup2(pair[0], watch.fd), watch.fd);
		cr_assert_eq(write(pair[1], "x", 1), 1);
		cr_assert_eq(reactor_run(r), 0);
		cr_assert_str_eq(trace, "data ");
		watch_end();
		close(watch.fd);
	}
}

/* It is tried ten times a second, not in circles. */
Test(reactor, refused_polls_take_their_time)
{
	uint64_t start = clock_now_ms();

	watch_refused(5);
	cr_assert_geq(clock_now_ms(), start + 250);
	watch_end();
}

Test(reactor, unwatch_between_refused_polls)
{
	for (unsigned times = 1; times < 4; times++) {
		trace[0] = '\0';
		watch_refused(times);
		watch_end();
		cr_assert_str_eq(trace, "closed ");
		cr_assert(timers_next(reactor_timers(r)) == CLOCK_NEVER);
	}
}

static bool ready_unwatches(struct reactor_watch *w)
{
	note("ready");
	reactor_unwatch(w);
	return true;
}

Test(reactor, unwatch_inside_ready)
{
	watch_start(POLLIN);
	watch.ready = ready_unwatches;
	cr_assert_eq(write(pair[1], "x", 1), 1);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "ready closed ");
}

/* Unwatched before the ring has even seen the poll. */
Test(reactor, unwatch_at_once)
{
	watch_start(POLLIN | POLLOUT);
	cr_assert_eq(write(pair[1], "x", 1), 1);
	watch_end();
	cr_assert_str_eq(trace, "closed ");
}

static unsigned counted;		/* so many are to come */

static bool count_ready(struct reactor_watch *w)
{
	if (!--counted)
		reactor_stop(r);
	return false;
}

static void count_closed(struct reactor_watch *w)
{
	if (!--counted)
		reactor_stop(r);
}

/* More watches than the ring has entries, watched and unwatched in one go. */
Test(reactor, many_watches)
{
	enum { N = 100 };
	static struct reactor_watch w[N];
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	reactor_task_init(&second, run_second);
	reactor_defer(r, &second);
	cr_assert_eq(reactor_run(r), 0);	/* the ring is enabled now */
	for (unsigned i = 0; i < N; i++) {
		w[i] = (struct reactor_watch){ .fd = fds[0], .events = POLLIN,
					       .ready = count_ready, .closed = count_closed };
		cr_assert_eq(reactor_watch(r, &w[i]), 0);
	}
	cr_assert_eq(write(fds[1], "x", 1), 1);
	counted = N;
	cr_assert_eq(reactor_run(r), 0);
	for (unsigned i = 0; i < N; i++)
		reactor_unwatch(&w[i]);
	counted = N;
	cr_assert_eq(reactor_run(r), 0);
	for (unsigned i = 0; i < N; i++)
		cr_assert_null(w[i].impl, "watch %u", i);
	close(fds[0]);
	close(fds[1]);
}

/* ---- time and messages ---- */

static struct timer timer;

static void expired(struct timer *t)
{
	note("timer");
	reactor_stop(r);
}

Test(reactor, timer_ends_the_wait)
{
	uint64_t start = clock_now_ms();

	timer_init(&timer, expired);
	timer_set(reactor_timers(r), &timer, start + 30);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
	cr_assert_geq(clock_now_ms(), start + 30);
}

Test(reactor, timer_in_the_past)
{
	timer_init(&timer, expired);
	timer_set(reactor_timers(r), &timer, 0);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
}

static void message(struct inbox_msg *msg)
{
	note("message");
	reactor_stop(r);
}

Test(reactor, inbox_ends_the_wait)
{
	struct inbox_msg msg = { .fn = message };

	inbox_post(reactor_inbox(r), &msg);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "message ");
	/* Stopped before it runs: one pass, and no more. */
	reactor_stop(r);
	reactor_stop(r);
	cr_assert_eq(reactor_run(r), 0);
}
