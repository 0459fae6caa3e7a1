/* SPDX-License-Identifier: BSD-3-Clause */
/* The inbox under fire: several senders, one owner that sleeps on the eventfd.  Every message runs
 * once, on the owner's thread, those of one sender in order, what the sender wrote is seen (TSan), and
 * no wake-up is lost: a lost one is a program that hangs.  Also run under TSan. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "inbox.h"
#include "thread.h"
#include "util.h"

#define SENDERS 4
#define MESSAGES 50000
#define POOL 64			/* of one sender: it waits when all are on their way */

struct message {
	struct inbox_msg msg;
	struct sender *sender;
	unsigned number;		/* written before the post, read by the owner */
	_Atomic(int) busy;
};

struct sender {
	pthread_t thread;
	struct message pool[POOL];
	unsigned received;		/* owner */
};

static struct inbox inbox;
static struct sender senders[SENDERS];
static pthread_t owner;
static unsigned total;

static void received(struct inbox_msg *msg)
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
		inbox_post(&inbox, &m->msg);
	}
	return NULL;
}

/* The owner posts to itself from a handler: it runs in the next call, not in this one. */
static unsigned self_runs;

static void post_to_self(struct inbox_msg *msg)
{
	if (++self_runs < 3)
		inbox_post(&inbox, msg);
}

static void check_self(void)
{
	struct inbox_msg self = { .fn = post_to_self };

	inbox_post(&inbox, &self);
	for (unsigned i = 1; i <= 3; i++) {
		struct pollfd pfd = { .fd = inbox.eventfd, .events = POLLIN };

		check(poll(&pfd, 1, 0) == 1);
		check(inbox_run(&inbox) == 1);
		check(self_runs == i);
	}
	check(inbox_run(&inbox) == 0);
}

int main(void)
{
	struct pollfd pfd;

	owner = pthread_self();
	check(!inbox_init(&inbox));
	check_self();
	pfd = (struct pollfd){ .fd = inbox.eventfd, .events = POLLIN };
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
		inbox_run(&inbox);
	}
	for (unsigned i = 0; i < SENDERS; i++) {
		pthread_join(senders[i].thread, NULL);
		check(senders[i].received == MESSAGES);
	}
	check(inbox_run(&inbox) == 0);
	inbox_fini(&inbox);
	printf("%u messages of %u senders\n", total, SENDERS);
	return 0;
}
