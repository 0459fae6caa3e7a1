/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks, timers and the inbox of any loop.  Owns an eventfd; tasks, timers and messages are linked
 * in their owners.  The loop's thread, but loop_post().
 *
 * A loop has a handful of timers, or many that are set to the latest deadline (clients in a
 * handshake), so loop_timer_set() searches from the end.
 *
 * The inbox is a stack: any thread pushes, the loop takes all.  A thread that finds the stack empty
 * wakes the loop; while the stack is not empty a wake-up is on its way. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "loop-impl.h"
#include "loop.h"

#define TASK_ROUNDS 3

int loop_init(struct loop *loop)
{
	list_init(&loop->tasks);
	list_init(&loop->next_tasks);
	list_init(&loop->sleep_tasks);
	list_init(&loop->timers);
	loop->pass = 0;
	atomic_init(&loop->pushed, NULL);
	loop->arrived = NULL;
	loop->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return loop->eventfd < 0 ? -errno : 0;
}

void loop_fini(struct loop *loop)
{
	close(loop->eventfd);
}

/* ---- whose pass it is ---- */

static _Thread_local struct loop *running;

void loop_enter(struct loop *loop)
{
	running = loop;
}

void loop_leave(void)
{
	running = NULL;
}

struct loop *loop_running(void)
{
	return running;
}

void loop_check_thread(const struct loop *loop)
{
	assert(!running || running == loop);
}

/* ---- tasks ---- */

void loop_task_init(struct loop_task *task, void (*fn)(struct loop_task *task))
{
	list_init(&task->link);
	task->fn = fn;
}

void loop_defer(struct loop *loop, struct loop_task *task)
{
	loop_check_thread(loop);
	if (list_empty(&task->link))
		list_add_tail(&loop->tasks, &task->link);
}

void loop_defer_next(struct loop *loop, struct loop_task *task)
{
	loop_check_thread(loop);
	if (list_empty(&task->link))
		list_add_tail(&loop->next_tasks, &task->link);
}

void loop_before_sleep(struct loop *loop, struct loop_task *task)
{
	loop_check_thread(loop);
	if (list_empty(&task->link))
		list_add_tail(&loop->sleep_tasks, &task->link);
}

void loop_undefer(struct loop_task *task)
{
	list_del(&task->link);
}

static void run_list(struct list *tasks)
{
	struct loop_task *task;
	struct list now;

	list_take(&now, tasks);
	while ((task = list_pop_entry(&now, struct loop_task, link)))
		task->fn(task);
}

uint64_t loop_pass(const struct loop *loop)
{
	return loop->pass;
}

void loop_run_tasks(struct loop *loop)
{
	for (unsigned round = 0; round < TASK_ROUNDS && !list_empty(&loop->tasks); round++)
		run_list(&loop->tasks);
	list_splice_tail(&loop->tasks, &loop->next_tasks);
	loop->pass++;
}

void loop_run_sleep_tasks(struct loop *loop)
{
	run_list(&loop->sleep_tasks);
}

/* ---- timers ---- */

void loop_timer_init(struct loop_timer *timer, void (*fn)(struct loop_timer *timer))
{
	list_init(&timer->link);
	timer->at_ms = CLOCK_NEVER;
	timer->fn = fn;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ms)
{
	struct list *at = &loop->timers;

	loop_check_thread(loop);
	list_del(&timer->link);
	timer->at_ms = at_ms;
	while (at->prev != &loop->timers &&
	       list_entry(at->prev, struct loop_timer, link)->at_ms > at_ms)
		at = at->prev;
	list_insert_before(at, &timer->link);
}

void loop_timer_cancel(struct loop_timer *timer)
{
	list_del(&timer->link);
}

void loop_run_timers(struct loop *loop, uint64_t now_ms)
{
	struct loop_timer *timer;
	struct list due;

	/* Due timers leave the list first: a handler that sets a timer for now runs in the next
	 * pass and cannot keep this pass going.  Cancelling works on either list. */
	list_init(&due);
	while (loop_deadline(loop) <= now_ms && !list_empty(&loop->timers))
		list_add_tail(&due, list_pop(&loop->timers));
	while ((timer = list_pop_entry(&due, struct loop_timer, link)))
		timer->fn(timer);
}

/* ---- inbox ---- */

void loop_msg_init(struct loop_msg *msg, void (*fn)(struct loop_msg *msg))
{
	atomic_init(&msg->posted, false);
	msg->fn = fn;
}

void loop_post(struct loop *loop, struct loop_msg *msg)
{
	struct loop_msg *head;
	uint64_t one = 1;
	ssize_t n;

	/* RACE: loop_run_inbox() clears the flag before the function runs.  Release: if the
	 * function runs later, the function sees this sender's writes. */
	if (atomic_exchange_explicit(&msg->posted, true, memory_order_acq_rel))
		return;
	head = atomic_load_explicit(&loop->pushed, memory_order_relaxed);
	/* RACE: once the exchange succeeds @msg belongs to the loop; only the old head is read
	 * below.  Release: the handler sees the sender's writes. */
	do {
		msg->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&loop->pushed, &head, msg,
							memory_order_release,
							memory_order_relaxed));
	if (head)
		return;
	do {
		n = write(loop->eventfd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	/* EAGAIN: the counter is full, so the loop is awake. */
	assert(n == sizeof(one) || errno == EAGAIN);
}

static struct loop_msg *oldest_first(struct loop_msg *newest)
{
	struct loop_msg *oldest = NULL;

	while (newest) {
		struct loop_msg *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

/* Move the pushed messages behind the arrived messages; returns the number of both. */
static unsigned take_pushed(struct loop *loop)
{
	struct loop_msg **end = &loop->arrived;
	unsigned n = 0;

	for (; *end; end = &(*end)->next)
		n++;
	*end = oldest_first(atomic_exchange_explicit(&loop->pushed, NULL, memory_order_acquire));
	for (; *end; end = &(*end)->next)
		n++;
	return n;
}

unsigned loop_run_inbox(struct loop *loop)
{
	struct loop_msg *msg;
	unsigned n, ran = 0;
	uint64_t count;

	/* ORDER: the eventfd before the stack, or the wake-up of a message pushed between the two
	 * would be lost. */
	(void)!read(loop->eventfd, &count, sizeof(count));
	n = take_pushed(loop);
	while (ran < n && (msg = loop->arrived)) {
		loop->arrived = msg->next;
		atomic_exchange_explicit(&msg->posted, false, memory_order_acq_rel);
		msg->fn(msg);	/* may free @msg */
		ran++;
	}
	return ran;
}

bool loop_inbox_empty(const struct loop *loop)
{
	return !loop->arrived && !atomic_load_explicit(&loop->pushed, memory_order_relaxed);
}

void loop_unpost(struct loop *loop, struct loop_msg *msg)
{
	struct loop_msg **at = &loop->arrived;

	loop_check_thread(loop);
	while (atomic_load_explicit(&msg->posted, memory_order_acquire)) {
		take_pushed(loop);
		while (*at && *at != msg)
			at = &(*at)->next;
		if (*at) {
			*at = msg->next;
			/* Release: the next sender writes msg->next, which this function has read
			 * and written. */
			atomic_store_explicit(&msg->posted, false, memory_order_release);
			return;
		}
		sched_yield();	/* RACE: its sender is in the middle of loop_post() */
	}
}

/* ---- calls of other threads ----
 *
 * A call is on its caller's stack, and is gone as soon as its semaphore is posted. */

static void call_msg(struct loop_msg *msg)
{
	struct loop_call *call = container_of(msg, struct loop_call, msg);

	call->fn(call);
}

int loop_call(struct loop *loop, void (*fn)(struct loop_call *call), void *arg)
{
	struct loop_call call = { .arg = arg, .fn = fn };

	assert(!loop_running());
	loop_msg_init(&call.msg, call_msg);
	sem_init(&call.ended, 0, 0);
	loop_post(loop, &call.msg);
	while (sem_wait(&call.ended))
		;		/* a signal */
	sem_destroy(&call.ended);
	return call.rc;
}

void loop_call_end(void *call)
{
	sem_post(&((struct loop_call *)call)->ended);
}
