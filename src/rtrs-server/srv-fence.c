/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tails of the queues; the nodes are the requests'.  Any thread, no lock.  An MCS queue: who
 * enters swaps itself in as the tail and links itself behind the former tail.  Cannot fail. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "srv-fence.h"

int srv_fence_init(struct srv_fence *f, unsigned depth)
{
	f->tails = calloc(depth, sizeof(*f->tails));
	if (!f->tails)
		return -ENOMEM;
	f->depth = depth;
	return 0;
}

void srv_fence_fini(struct srv_fence *f)
{
	for (unsigned i = 0; i < f->depth; i++)
		assert(!atomic_load(&f->tails[i]));
	free((void *)f->tails);
	f->tails = NULL;
	f->depth = 0;
}

bool srv_fence_enter(struct srv_fence *f, unsigned id, struct srv_fence_node *node)
{
	struct srv_fence_node *prev;

	assert(id < f->depth);
	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	/* ORDER: acquire, so that what the former head did to shared state is seen by us; release,
	 * so that whoever swaps us out sees our next as NULL. */
	prev = atomic_exchange_explicit(&f->tails[id], node, memory_order_acq_rel);
	if (!prev)
		return true;
	/* RACE: between the exchange and this store prev may be leaving; it waits for the store. */
	atomic_store_explicit(&prev->next, node, memory_order_release);
	return false;
}

struct srv_fence_node *srv_fence_leave(struct srv_fence *f, unsigned id,
				       struct srv_fence_node *node)
{
	struct srv_fence_node *self = node, *next;

	assert(id < f->depth);
	if (atomic_compare_exchange_strong_explicit(&f->tails[id], &self, NULL,
						    memory_order_acq_rel, memory_order_acquire))
		return NULL;
	while (!(next = atomic_load_explicit(&node->next, memory_order_acquire)))
		;
	return next;
}
