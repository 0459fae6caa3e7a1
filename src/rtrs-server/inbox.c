/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns an eventfd and a stack of messages that any thread pushes to and the owner takes whole.
 *
 * The thread that finds the stack empty wakes the owner; while it is not empty a wake-up is on its
 * way.  Ends with inbox_fini() on the owner's thread when no sender is left. */
#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "inbox.h"

int inbox_init(struct inbox *in)
{
	atomic_init(&in->head, NULL);
	in->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return in->eventfd < 0 ? -errno : 0;
}

void inbox_fini(struct inbox *in)
{
	assert(!atomic_load_explicit(&in->head, memory_order_relaxed));
	close(in->eventfd);
}

void inbox_post(struct inbox *in, struct inbox_msg *msg)
{
	struct inbox_msg *head = atomic_load_explicit(&in->head, memory_order_relaxed);
	uint64_t one = 1;
	ssize_t n;

	/* RACE: once the exchange succeeds @msg belongs to the owner; only the old head is looked at
	 * below.  Release: what the sender wrote is seen by the handler. */
	do {
		msg->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&in->head, &head, msg,
							memory_order_release,
							memory_order_relaxed));
	if (head)
		return;
	do {
		n = write(in->eventfd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	/* EAGAIN: the counter is full, so the owner is awake. */
	assert(n == sizeof(one) || errno == EAGAIN);
}

static struct inbox_msg *oldest_first(struct inbox_msg *newest)
{
	struct inbox_msg *oldest = NULL;

	while (newest) {
		struct inbox_msg *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

unsigned inbox_run(struct inbox *in)
{
	struct inbox_msg *msg;
	uint64_t count;
	unsigned n = 0;

	/* ORDER: the eventfd before the stack, or the wake-up of a message pushed between the two
	 * would be lost. */
	(void)!read(in->eventfd, &count, sizeof(count));
	msg = oldest_first(atomic_exchange_explicit(&in->head, NULL, memory_order_acquire));
	while (msg) {
		struct inbox_msg *next = msg->next;

		msg->fn(msg);	/* may free @msg */
		msg = next;
		n++;
	}
	return n;
}
