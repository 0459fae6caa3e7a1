/* SPDX-License-Identifier: BSD-3-Clause */
/* The reactor: deferred work, watches with their level semantics, timers, messages, stop. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "loop-impl.h"
#include "reactor-ring.h"
#include "reactor.h"
#include "unit.h"
#include "util.h"

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

/* The entry that was queued last, and whose it is. */
static struct io_uring_sqe *last_sqe;
static struct reactor_op *last_op;

struct io_uring_sqe *__real_reactor_ring_sqe(struct reactor *reactor, struct reactor_op *op);
struct io_uring_sqe *__wrap_reactor_ring_sqe(struct reactor *reactor, struct reactor_op *op);

struct io_uring_sqe *__wrap_reactor_ring_sqe(struct reactor *reactor, struct reactor_op *op)
{
	last_op = op;
	return last_sqe = __real_reactor_ring_sqe(reactor, op);
}

/* ---- tasks ---- */

static struct loop_task first, second;

static void run_first(struct loop_task *task)
{
	note("first");
	loop_undefer(&second);
	loop_defer(reactor_loop(r), &second);
	loop_defer(reactor_loop(r), &second);
}

static void run_second(struct loop_task *task)
{
	note("second");
	reactor_stop(r);
}

Test(reactor, deferred_work)
{
	loop_task_init(&first, run_first);
	loop_task_init(&second, run_second);
	loop_defer(reactor_loop(r), &first);
	loop_defer(reactor_loop(r), &first);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "first second ");
}

static unsigned passes;

static void run_next(struct loop_task *task)
{
	note("next");
	if (passes--)
		loop_defer_next(reactor_loop(r), task);
	else
		reactor_stop(r);
}

/* Nothing else would wake the thread, and a pass has one of them. */
Test(reactor, no_sleep_before_the_next_pass)
{
	passes = 5;
	loop_task_init(&first, run_next);
	loop_defer(reactor_loop(r), &first);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "next next next next next next ");
}

/* ---- before a sleep ---- */

static struct loop_task late, early;
static unsigned early_again, late_again;

static void run_early(struct loop_task *task)
{
	note("early");
	if (early_again) {
		early_again--;
		loop_defer(reactor_loop(r), task);
	}
}

static void run_late(struct loop_task *task)
{
	note("late");
	if (!late_again) {
		reactor_stop(r);
		return;
	}
	late_again--;
	loop_before_sleep(reactor_loop(r), task);
	loop_defer(reactor_loop(r), &early);
}

static void late_start(void)
{
	loop_task_init(&early, run_early);
	loop_task_init(&late, run_late);
	loop_before_sleep(reactor_loop(r), &late);
	loop_before_sleep(reactor_loop(r), &late);
}

/* However many passes that takes. */
Test(reactor, before_sleep_comes_after_all_work)
{
	late_start();
	early_again = 6;
	loop_defer(reactor_loop(r), &early);
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
	loop_undefer(&late);
	loop_task_init(&second, run_second);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "second ");
}

/* ---- watches ---- */

static struct loop_watch watch;
static unsigned more;			/* ready() says so many times that there is more */
static unsigned stop_after;

static bool ready(struct loop_watch *w)
{
	note("ready");
	if (!--stop_after)
		reactor_stop(r);
	if (!more)
		return false;
	more--;
	return true;
}

static void closed(struct loop_watch *w)
{
	note("closed");
	reactor_stop(r);
}

static void watch_start(short events)
{
	watch = (struct loop_watch){ .fd = pair[0], .events = events, .ready = ready,
					.closed = closed };
	cr_assert_eq(loop_watch(reactor_loop(r), &watch), 0);
}

static void watch_end(void)
{
	loop_unwatch(&watch);
	cr_assert_null(strstr(trace, "closed"), "closed() ran inside loop_unwatch()");
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_not_null(strstr(trace, "closed"));
}

static void run_until(unsigned n)
{
	stop_after = n;
	cr_assert_eq(reactor_run(r), 0);
}

static bool writable_once(struct loop_watch *w)
{
	note("writable");
	loop_watch_events(w, POLLIN);
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

static bool has_always_more(struct loop_watch *w)
{
	note(w == &watch ? "a" : "b");
	if (!--stop_after)
		reactor_stop(r);
	return true;
}

/* Who always has more keeps nobody waiting. */
Test(reactor, those_with_more_take_turns)
{
	struct loop_watch other = { .events = POLLIN, .ready = has_always_more };
	int other_pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, other_pair),
		     0);
	cr_assert_eq(write(pair[1], "x", 1), 1);
	cr_assert_eq(write(other_pair[1], "x", 1), 1);
	watch_start(POLLIN);
	watch.ready = has_always_more;
	other.fd = other_pair[0];
	cr_assert_eq(loop_watch(reactor_loop(r), &other), 0);
	run_until(10);
	cr_assert_not_null(strstr(trace, "a b a b a b a b "), "%s", trace);
	loop_unwatch(&other);
	watch_end();
	close(other_pair[0]);
	close(other_pair[1]);
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
	loop_watch_events(&watch, POLLIN | POLLOUT);
	run_until(2);			/* writable all the time */
	loop_watch_events(&watch, POLLIN);
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
	loop_task_init(&second, run_second);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "second ");
	loop_watch_events(&watch, POLLIN);
	run_until(1);
	cr_assert_str_eq(trace, "second ready ");
	watch_end();
}

/* Reads nothing, and does not want to for a while. */
static bool ready_rests(struct loop_watch *w)
{
	note("ready");
	loop_watch_events(w, 0);
	loop_defer(reactor_loop(r), &second);
	return false;
}

static void want_again(struct loop_task *task)
{
	watch.ready = ready;
	loop_watch_events(&watch, POLLIN);
}

/* What was left there is told when POLLIN is wanted again. */
Test(reactor, left_until_wanted_again)
{
	loop_task_init(&second, want_again);
	watch_start(POLLIN);
	watch.ready = ready_rests;
	cr_assert_eq(write(pair[1], "x", 1), 1);
	run_until(1);
	cr_assert_str_eq(trace, "ready ready ");
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
static bool ready_reads(struct loop_watch *w)
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

static bool ready_meets_errors(struct loop_watch *w)
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

	watch = (struct loop_watch){ .fd = fd, .events = POLLIN, .ready = ready_meets_errors,
					.closed = closed };
	close(fd);
	cr_assert_eq(loop_watch(reactor_loop(r), &watch), 0);
	errors_wanted = times;
	cr_assert_eq(reactor_run(r), 0);
}

/* As when the kernel has no memory for a while: what comes later is told, however often it was
 * refused. */
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
		cr_assert(loop_deadline(reactor_loop(r)) == CLOCK_NEVER);
	}
}

/* The kernel may end a poll that reports several times, as when completions overflow. */
Test(reactor, a_poll_that_ends_is_armed_again)
{
	char c;

	watch_start(POLLIN);
	last_sqe->len = 0;		/* without IORING_POLL_ADD_MULTI */
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(write(pair[1], "x", 1), 1);
		run_until(1);
		cr_assert_eq(read(pair[0], &c, 1), 1);
	}
	watch_end();
}

static void (*cancel_done)(struct reactor_op *op, int res, unsigned flags);

static void cancel_comes_too_early(struct reactor_op *op, int res, unsigned flags)
{
	cr_assert_eq(res, -ENOENT);
	op->done = cancel_done;
	op->done(op, -EALREADY, flags);
}

/* A poll that was about to complete goes on behind its cancellation, which said -EALREADY. */
Test(reactor, a_poll_is_cancelled_again)
{
	watch_start(POLLIN);
	cr_assert_eq(write(pair[1], "x", 1), 1);
	run_until(1);
	loop_unwatch(&watch);
	last_sqe->addr = 1;		/* of nobody */
	cancel_done = last_op->done;
	last_op->done = cancel_comes_too_early;
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "ready closed ");
}

static bool ready_unwatches(struct loop_watch *w)
{
	note("ready");
	loop_unwatch(w);
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

/* Nobody wants to hear of the end: the watch and its descriptor are the caller's at once. */
Test(reactor, unwatch_without_closed)
{
	for (unsigned enabled = 0; enabled < 2; enabled++) {
		struct loop_watch *w = calloc(1, sizeof(*w));

		*w = (struct loop_watch){ .fd = dup(pair[0]), .events = POLLIN | POLLOUT,
					  .ready = ready };
		cr_assert_eq(loop_watch(reactor_loop(r), w), 0);
		stop_after = 1;
		if (enabled)
			cr_assert_eq(reactor_run(r), 0);
		trace[0] = '\0';
		loop_unwatch(w);
		loop_unwatch(w);
		close(w->fd);
		free(w);
		loop_task_init(&second, run_second);
		for (unsigned pass = 0; pass < 3; pass++) {
			loop_defer(reactor_loop(r), &second);
			cr_assert_eq(reactor_run(r), 0);
		}
		cr_assert_str_eq(trace, "second second second ");
	}
}

/* Told of the end, and of nothing else. */
Test(reactor, only_the_end_is_wanted)
{
	watch_start(POLLRDHUP);
	cr_assert_eq(write(pair[1], "x", 1), 1);
	loop_task_init(&second, run_second);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "second second ");
	shutdown(pair[1], SHUT_WR);
	run_until(1);
	cr_assert_eq(strncmp(trace, "second second ready ", 20), 0, "%s", trace);
	watch_end();
}

static unsigned counted;		/* so many are to come */

static bool count_ready(struct loop_watch *w)
{
	if (!--counted)
		reactor_stop(r);
	return false;
}

static void count_closed(struct loop_watch *w)
{
	if (!--counted)
		reactor_stop(r);
}

/* ---- sockets that listen ---- */

static struct sockaddr_un listener_addr;

static int listener(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	listener_addr.sun_family = AF_UNIX;
	snprintf(listener_addr.sun_path, sizeof(listener_addr.sun_path),
		 "/tmp/rtrs-reactor.%d.sock", (int)getpid());
	unlink(listener_addr.sun_path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&listener_addr, sizeof(listener_addr)), 0);
	cr_assert_eq(listen(fd, 8), 0);
	return fd;
}

static int visit(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!connect(fd, (struct sockaddr *)&listener_addr, sizeof(listener_addr)))
		return fd;
	close(fd);
	return -1;
}

static unsigned accepted;
static int second_fd;

static void tell_parent(struct loop_task *task)
{
	cr_assert_eq(write(second_fd, "", 1), 1);
}

static bool accept_one(struct loop_watch *w)
{
	int fd = accept(w->fd, NULL, NULL);

	cr_assert_geq(fd, 0);
	close(fd);
	accepted++;
	reactor_stop(r);
	return false;
}

/* The watch reports each visitor, one after the other, and none while it is not wanted. */
Test(reactor, each_visitor_of_a_listener_is_reported)
{
	struct loop_watch w = { .fd = listener(), .events = POLLIN, .ready = accept_one,
				.closed = count_closed };

	cr_assert_eq(loop_watch(reactor_loop(r), &w), 0);
	for (unsigned n = 1; n <= 20; n++) {
		int fd = visit();

		cr_assert_geq(fd, 0);
		cr_assert_eq(reactor_run(r), 0);
		cr_assert_eq(accepted, n);
		close(fd);
	}
	loop_watch_events(&w, 0);
	cr_assert_geq(visit(), 0);
	loop_task_init(&second, run_second);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_eq(accepted, 20);
	loop_watch_events(&w, POLLIN);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_eq(accepted, 21);
	loop_unwatch(&w);
	counted = 1;
	cr_assert_eq(reactor_run(r), 0);
	close(w.fd);
	unlink(listener_addr.sun_path);
}

/* The kernel keeps what a ring polls after a kill: half of such sockets took a connection then. */
Test(reactor, a_listener_ends_with_its_process)
{
	for (unsigned round = 0; round < 40; round++) {
		int ready_fds[2], fd = listener();
		char byte;
		pid_t pid;

		cr_assert_eq(pipe(ready_fds), 0);
		pid = fork();
		if (!pid) {
			struct loop_watch w = { .fd = fd, .events = POLLIN, .ready = accept_one };
			struct reactor *own;

			reactor_create("own", 8, &own);
			loop_watch(reactor_loop(own), &w);
			loop_task_init(&second, tell_parent);
			second_fd = ready_fds[1];
			loop_defer(reactor_loop(own), &second);
			_exit(reactor_run(own));
		}
		close(fd);
		close(ready_fds[1]);
		cr_assert_eq(read(ready_fds[0], &byte, 1), 1);
		close(ready_fds[0]);
		kill(pid, SIGKILL);
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
		cr_assert_eq(visit(), -1, "round %u: a dead process took a connection", round);
		unlink(listener_addr.sun_path);
	}
}

/* More watches than the ring has entries, watched and unwatched in one go. */
Test(reactor, many_watches)
{
	enum { N = 100 };
	static struct loop_watch w[N];
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	loop_task_init(&second, run_second);
	loop_defer(reactor_loop(r), &second);
	cr_assert_eq(reactor_run(r), 0);	/* the ring is enabled now */
	for (unsigned i = 0; i < N; i++) {
		w[i] = (struct loop_watch){ .fd = fds[0], .events = POLLIN,
					       .ready = count_ready, .closed = count_closed };
		cr_assert_eq(loop_watch(reactor_loop(r), &w[i]), 0);
	}
	cr_assert_eq(write(fds[1], "x", 1), 1);
	counted = N;
	cr_assert_eq(reactor_run(r), 0);
	for (unsigned i = 0; i < N; i++)
		loop_unwatch(&w[i]);
	counted = N;
	cr_assert_eq(reactor_run(r), 0);
	for (unsigned i = 0; i < N; i++)
		cr_assert_null(w[i].impl, "watch %u", i);
	close(fds[0]);
	close(fds[1]);
}

/* ---- time and messages ---- */

static struct loop_timer timer;

static void expired(struct loop_timer *t)
{
	note("timer");
	reactor_stop(r);
}

Test(reactor, timer_ends_the_wait)
{
	uint64_t start = clock_now_ms();

	loop_timer_init(&timer, expired);
	loop_timer_set(reactor_loop(r), &timer, start + 30);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
	cr_assert_geq(clock_now_ms(), start + 30);
}

Test(reactor, timer_in_the_past)
{
	loop_timer_init(&timer, expired);
	loop_timer_set(reactor_loop(r), &timer, 0);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
}

static struct loop_timer other;

static void expires_never(struct loop_timer *t)
{
	note("other");
}

/* The ring has a timeout for @other, an hour away; an earlier deadline comes. */
static void set_earlier(struct loop_task *task)
{
	loop_timer_set(reactor_loop(r), &timer, clock_now_ms() + 20);
}

Test(reactor, an_earlier_timer_moves_the_timeout)
{
	loop_timer_init(&timer, expired);
	loop_timer_init(&other, expires_never);
	loop_task_init(&first, set_earlier);
	loop_timer_set(reactor_loop(r), &other, clock_now_ms() + 3600000);
	loop_defer(reactor_loop(r), &first);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
}

/* The ring's timeout is for a deadline that is later now, or gone. */
static void set_later(struct loop_task *task)
{
	loop_timer_set(reactor_loop(r), &timer, timer.at_ms + 40);
	loop_timer_cancel(&other);
}

Test(reactor, a_later_timer_is_waited_for)
{
	uint64_t start = clock_now_ms();

	loop_timer_init(&timer, expired);
	loop_timer_init(&other, expires_never);
	loop_task_init(&first, set_later);
	loop_timer_set(reactor_loop(r), &timer, start + 20);
	loop_timer_set(reactor_loop(r), &other, start + 10);
	loop_defer(reactor_loop(r), &first);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
	cr_assert_geq(clock_now_ms(), start + 60);
}

/* The thread never sleeps, and its ring has one timeout. */
static void go_on(struct loop_task *task)
{
	if (loop_timer_armed(&timer))
		cr_assert_eq(r->timeout_ms, timer.at_ms);
	loop_defer_next(reactor_loop(r), task);
}

Test(reactor, timer_of_a_busy_thread)
{
	loop_timer_init(&timer, expired);
	loop_task_init(&first, go_on);
	loop_timer_set(reactor_loop(r), &timer, clock_now_ms() + 20);
	loop_defer(reactor_loop(r), &first);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
	loop_undefer(&first);
}

/* Set by a task that runs before the thread sleeps. */
Test(reactor, timer_of_a_sleep_task)
{
	loop_timer_init(&timer, expired);
	loop_task_init(&first, set_earlier);
	loop_before_sleep(reactor_loop(r), &first);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "timer ");
}

static void message(struct loop_msg *msg)
{
	note("message");
	reactor_stop(r);
}

Test(reactor, message_ends_the_wait)
{
	struct loop_msg msg = { .fn = message };

	loop_post(reactor_loop(r), &msg);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_str_eq(trace, "message ");
	/* Stopped before it runs: one pass, and no more. */
	reactor_stop(r);
	reactor_stop(r);
	cr_assert_eq(reactor_run(r), 0);
}

/* A stop that comes behind the last run, or without any. */
Test(reactor, stopped_and_never_run)
{
	struct reactor *own;

	cr_assert_eq(reactor_create("own", 8, &own), 0);
	reactor_stop(own);
	reactor_destroy(own);
}

/* ---- where rings are forbidden ---- */

static int forbidden;			/* -errno of each new ring */
static const char *sysctl_text;		/* of kernel.io_uring_disabled; NULL: the kernel has none */
static int nopen;
static char line[512];

int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *p);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *p);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);

int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *p)
{
	return forbidden ? forbidden : __real_io_uring_queue_init_params(entries, ring, p);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!forbidden || strcmp(path, "/proc/sys/kernel/io_uring_disabled"))
		return __real_fopen(path, mode);
	if (!sysctl_text) {
		errno = ENOENT;
		return NULL;
	}
	nopen++;
	return fmemopen((void *)(uintptr_t)sysctl_text, strlen(sysctl_text), "r");
}

int __wrap_fclose(FILE *f)
{
	nopen -= forbidden != 0;
	return __real_fclose(f);
}

static void keep_line(enum log_level level, const char *text)
{
	snprintf(line, sizeof(line), "%s", text);
}

/* The line names what forbids the ring, and the way out. */
Test(reactor, forbidden)
{
	static const struct {
		int rc;
		const char *sysctl, *says;
	} rows[] = {
		{ -EPERM, "1\n", "kernel.io_uring_disabled = 1): run as root" },
		{ -EPERM, "2\n", "kernel.io_uring_disabled = 2): to allow it" },
		{ -EPERM, "0\n", "a system call filter, as containers have" },
		{ -EPERM, "\n", "a system call filter, as containers have" },
		{ -EPERM, NULL, "a system call filter, as containers have" },
		{ -EACCES, "1\n", "a system call filter, as containers have" },
		{ -ENOSYS, "0\n", "this kernel has no io_uring" },
		{ -ENOMEM, "0\n", "raise the limit of locked memory" },
		{ -EMFILE, "0\n", "cannot create an io_uring: Too many open files" },
	};
	struct reactor *own;

	log_init(keep_line, LOG_LEVEL_INFO);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		forbidden = rows[i].rc;
		sysctl_text = rows[i].sysctl;
		line[0] = '\0';
		cr_assert_eq(reactor_create("own", 8, &own), forbidden);
		cr_assert_not_null(strstr(line, rows[i].says), "%s", line);
		cr_assert_eq(nopen, 0);
	}
	forbidden = 0;
}

/* ---- what the ring refuses ---- */

static int result;

static void op_done(struct reactor_op *op, int res, unsigned flags)
{
	result = res;
	reactor_stop(r);
}

static struct reactor_op an_op = { .done = op_done };

static void open_a_file(struct loop_task *task)
{
	io_uring_prep_openat(reactor_ring_sqe(r, &an_op), AT_FDCWD, "/dev/null", O_RDONLY, 0);
}

/* An operation that the server does not use, and a registration. */
Test(reactor, restricted)
{
	loop_task_init(&first, open_a_file);
	loop_defer(reactor_loop(r), &first);
	cr_assert_eq(reactor_run(r), 0);
	cr_assert_eq(result, -EACCES, "%d", result);
	cr_assert_eq(io_uring_register_eventfd(&r->ring, pair[0]), -EACCES);
}
