/* SPDX-License-Identifier: BSD-3-Clause */
/* The inbox of a loop under fire: several senders, one owner that sleeps on the eventfd.  Every
 * message runs once, on the owner's thread, those of one sender in order, what the sender wrote is
 * seen (TSan), and no wake-up is lost: a lost one is a program that hangs.  Then one message that
 * all of them post at will and the owner takes back now and then.  Also run under TSan. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "loop-impl.h"
#include "thread.h"
#include "util.h"

#define SENDERS 4
#define MESSAGES 50000
#define POOL 64			/* of one sender: it waits when all are on their way */

struct message {
	struct loop_msg msg;
	struct sender *sender;
	unsigned number;		/* written before the post, read by the owner */
	_Atomic(int) busy;
};

struct sender {
	pthread_t thread;
	struct message pool[POOL];
	unsigned received;		/* owner */
};

static struct loop loop;
static struct sender senders[SENDERS];
static pthread_t owner;
static unsigned total;

static void received(struct loop_msg *msg)
{
	struct message *m = container_of(msg, struct message, msg);

	check(pthread_equal(pthread_self(), owner));
	check(m->number == m->sender->received);
	m->sender->received++;
	total++;
	atomic_store_explicit(&m->busy, 0, memory_order_release);
}

static void *send_all(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < MESSAGES; i++) {
		struct message *m = &s->pool[i % POOL];

		while (atomic_load_explicit(&m->busy, memory_order_acquire))
			sched_yield();
		atomic_store_explicit(&m->busy, 1, memory_order_relaxed);
		m->number = i;
		loop_post(&loop, &m->msg);
	}
	return NULL;
}

/* The owner posts to itself from a handler: it runs in the next call, not in this one. */
static unsigned self_runs;

static void post_to_self(struct loop_msg *msg)
{
	if (++self_runs < 3)
		loop_post(&loop, msg);
}

static void check_self(void)
{
	struct loop_msg self = { .fn = post_to_self };

	loop_post(&loop, &self);
	for (unsigned i = 1; i <= 3; i++) {
		struct pollfd pfd = { .fd = loop.eventfd, .events = POLLIN };

		check(poll(&pfd, 1, 0) == 1);
		check(loop_run_inbox(&loop) == 1);
		check(self_runs == i);
	}
	check(loop_run_inbox(&loop) == 0);
}

/* ---- one message of all ---- */

#define BUMPS 100000

static struct loop_msg shared;
static _Atomic(unsigned) bumps, ended;
static unsigned seen;

static void shared_runs(struct loop_msg *msg)
{
	check(pthread_equal(pthread_self(), owner));
	seen = atomic_load_explicit(&bumps, memory_order_relaxed);
}

static void *bump_all(void *arg)
{
	for (unsigned i = 0; i < BUMPS; i++) {
		atomic_fetch_add_explicit(&bumps, 1, memory_order_relaxed);
		loop_post(&loop, &shared);
	}
	atomic_fetch_add(&ended, 1);
	return NULL;
}

/* A message that is posted, or finds itself posted, runs after that. */
static void check_shared(void)
{
	struct pollfd pfd = { .fd = loop.eventfd, .events = POLLIN };
	pthread_t threads[SENDERS];

	loop_msg_init(&shared, shared_runs);
	for (unsigned i = 0; i < SENDERS; i++)
		check(!pthread_create(&threads[i], NULL, bump_all, NULL));
	for (unsigned i = 0; seen < SENDERS * BUMPS; i++) {
		if (i % 8 == 7 && atomic_load(&ended) < SENDERS) {
			loop_unpost(&loop, &shared);
			loop_post(&loop, &shared);
		}
		check(poll(&pfd, 1, -1) == 1);
		loop_run_inbox(&loop);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	loop_run_inbox(&loop);
	check(loop_inbox_empty(&loop));
}

int main(void)
{
	struct pollfd pfd;

	owner = pthread_self();
	check(!loop_init(&loop));
	check_self();
	pfd = (struct pollfd){ .fd = loop.eventfd, .events = POLLIN };
	for (unsigned i = 0; i < SENDERS; i++) {
		for (unsigned k = 0; k < POOL; k++) {
			senders[i].pool[k].msg.fn = received;
			senders[i].pool[k].sender = &senders[i];
		}
		if (pthread_create(&senders[i].thread, NULL, send_all, &senders[i]))
			abort();
	}
	while (total < SENDERS * MESSAGES) {
		check(poll(&pfd, 1, -1) == 1);
		loop_run_inbox(&loop);
	}
	for (unsigned i = 0; i < SENDERS; i++) {
		pthread_join(senders[i].thread, NULL);
		check(senders[i].received == MESSAGES);
	}
	check(loop_run_inbox(&loop) == 0);
	check_shared();
	loop_fini(&loop);
	printf("%u messages of %u senders\n", total, SENDERS);
	return 0;
}
