/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop around epoll: each promise of loop.h that is not loop.c's, and its end while it is
 * busy.  One script runs on the loop's thread, and each step of it is begun by the one before.
 * Also run under TSan. */
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "loop.h"
#include "thread.h"
#include "util.h"

static struct loop *loop;
static sem_t done;
static int pair[2];
static char trace[64];

static void note(const char *what)
{
	check(strlen(trace) + strlen(what) + 2 < sizeof(trace));
	strcat(strcat(trace, what), " ");
}

/* ---- the steps, last first ---- */

static struct loop_task late, early;
static struct loop_timer timer;
static struct loop_watch *watch;

static void run_late(struct loop_task *task)
{
	note("late");
	sem_post(&done);
}

static void run_early(struct loop_task *task)
{
	note("early");
}

static void watch_closed(struct loop_watch *w)
{
	check(w == watch && !w->loop);
	note("closed");
	free(w);
	loop_task_init(&late, run_late);
	loop_task_init(&early, run_early);
	loop_before_sleep(loop, &late);
	loop_defer(loop, &early);
}

/* Told of the end, although nothing is wanted. */
static bool ready_end(struct loop_watch *w)
{
	note("end");
	loop_unwatch(w);
	loop_unwatch(w);
	note("unwatched");
	return true;
}

static void expired(struct loop_timer *t)
{
	note("timer");
	watch->ready = ready_end;
	close(pair[1]);
}

static unsigned more = 2;

/* Readable all the time; nothing is wanted any more, and yet "there is more". */
static bool ready_more(struct loop_watch *w)
{
	note("more");
	loop_watch_events(w, 0);
	if (more--)
		return true;
	loop_timer_init(&timer, expired);
	loop_timer_set(loop, &timer, clock_now_ms() + 20);
	return false;
}

static void start(struct loop_msg *msg)
{
	watch = calloc(1, sizeof(*watch));
	check(watch);
	watch->fd = pair[0];
	watch->events = POLLIN;
	watch->ready = ready_more;
	watch->closed = watch_closed;
	check(!loop_watch(loop, watch));
	check(write(pair[1], "x", 1) == 1);
}

/* ---- events that change ---- */

static struct loop_watch fickle;
static struct loop_task change_back;
static unsigned told;

static bool ready_fickle(struct loop_watch *w)
{
	told++;
	loop_watch_events(w, 0);
	loop_defer(loop, &change_back);
	return false;
}

/* Off and on in one pass: what is readable is told of again. */
static void run_change_back(struct loop_task *task)
{
	loop_watch_events(&fickle, POLLIN);
	if (told < 3)
		return;
	loop_watch_events(&fickle, 0);
	loop_unwatch(&fickle);
	sem_post(&done);
}

static void start_fickle(struct loop_msg *msg)
{
	fickle = (struct loop_watch){ .fd = pair[0], .ready = ready_fickle };
	loop_task_init(&change_back, run_change_back);
	check(!loop_watch(loop, &fickle));
	check(write(pair[1], "x", 1) == 1);
	loop_watch_events(&fickle, POLLIN);
}

/* ---- a timer beside a descriptor that is always ready ---- */

static struct loop_watch busy;

static bool ready_busy(struct loop_watch *w)
{
	return false;
}

static void expired_busy(struct loop_timer *t)
{
	loop_unwatch(&busy);
	sem_post(&done);
}

static void start_busy(struct loop_msg *msg)
{
	busy = (struct loop_watch){ .fd = pair[0], .events = POLLIN, .ready = ready_busy };
	check(!loop_watch(loop, &busy));
	loop_timer_init(&timer, expired_busy);
	loop_timer_set(loop, &timer, clock_now_ms() + 20);
}

/* ---- many at once ---- */

#define MANY 100

static struct loop_watch many[MANY];
static unsigned ready_count;

static bool ready_many(struct loop_watch *w)
{
	loop_unwatch(&many[(size_t)(w - many) ^ 1]);	/* the other one of two: it is not told */
	loop_unwatch(w);
	if (++ready_count == MANY / 2)
		sem_post(&done);
	return false;
}

static void start_many(struct loop_msg *msg)
{
	for (unsigned i = 0; i < MANY; i++) {
		many[i] = (struct loop_watch){ .fd = pair[1], .events = POLLOUT,
					       .ready = ready_many };
		check(!loop_watch(loop, &many[i]));
	}
}

/* ---- a call, which ends behind its function ---- */

static struct loop_call *call_later;
static struct loop_task later;

static void run_later(struct loop_task *task)
{
	call_later->rc = *(int *)call_later->arg;
	*(int *)call_later->arg = 0;
	loop_call_end(call_later);
}

static void begin_later(struct loop_call *call)
{
	check(loop_running() == loop && call->rc == 0);
	call_later = call;
	loop_task_init(&later, run_later);
	loop_before_sleep(loop, &later);
}

static void end_at_once(struct loop_call *call)
{
	loop_call_end(call);
}

int main(void)
{
	int number = -7;
	struct loop_msg msg;

	check(!sem_init(&done, 0, 0));
	check(!loop_poll_create("test", &loop));
	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	loop_msg_init(&msg, start);
	loop_post(loop, &msg);
	sem_wait(&done);
	printf("%s\n", trace);
	check(!strcmp(trace, "more more more timer end unwatched closed early late "));

	close(pair[0]);
	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	loop_msg_init(&msg, start_fickle);
	loop_post(loop, &msg);
	sem_wait(&done);
	check(told == 3);
	loop_msg_init(&msg, start_busy);	/* the byte is still there */
	loop_post(loop, &msg);
	sem_wait(&done);
	loop_msg_init(&msg, start_many);
	loop_post(loop, &msg);
	sem_wait(&done);
	check(ready_count == MANY / 2);
	check(loop_call(loop, begin_later, &number) == -7 && number == 0);
	check(loop_call(loop, end_at_once, NULL) == 0);
	loop_poll_destroy(loop);

	/* Ended with messages on their way. */
	check(!loop_poll_create("test", &loop));
	loop_msg_init(&msg, start_many);
	loop_post(loop, &msg);
	loop_poll_destroy(loop);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
