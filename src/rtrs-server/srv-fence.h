/* SPDX-License-Identifier: BSD-3-Clause */
/* The fence of a session: at most one request per buf_id is in the storage, whichever path or life
 * of a path it came from (doc/decisions.md D6).
 *
 * A client that lost a path sends its unanswered requests again, under the same buf_id, on the next
 * path.  The older copy may still be in the storage.  Separate chunk memory per path keeps the two
 * from sharing bytes; the fence keeps their order: per buf_id a queue in order of arrival, and only
 * its head runs.  A node that is not the head waits until the node before it leaves.
 *
 * Why the order of arrival is the right one:
 * - a path's come-back is accepted only when its former connections have drained (doc/decisions.md
 * D14), so every
 *    older copy has arrived, or never will, before the newer one can be sent;
 * - an older copy that has not started when its path dies is dropped by its owner in its turn: it
 *    leaves without running, so it cannot run behind its successor;
 * - an older copy that has started is waited for: until it has left the storage, not until it was
 *    answered (its answer may have nowhere to go).
 *
 * An MCS queue: who enters swaps itself in as the tail and links itself behind the former tail.
 * Lock-free, one atomic exchange to enter and one compare-exchange to leave when nobody waits; any
 * thread.  In leave() the loser of a race with an entering thread waits for that thread's next
 * store: nodes are reused, so leave() must not return while somebody is still about to link to
 * @node. */
#ifndef SRV_FENCE_H
#define SRV_FENCE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct srv_fence_node {
	_Atomic(struct srv_fence_node *) next;
};

struct srv_fence {
	unsigned depth;
	_Atomic(struct srv_fence_node *) *tails;
};

/* For the ids 0..@depth-1.  0 or -ENOMEM. */
int srv_fence_init(struct srv_fence *f, unsigned depth);
/* Every node must have left. */
void srv_fence_fini(struct srv_fence *f);

/* @node arrives for @id.  True: run it now.  False: it is held, and somebody's srv_fence_leave()
 * will return it.  @node belongs to the fence until its own leave. */
static inline bool srv_fence_enter(struct srv_fence *f, unsigned id, struct srv_fence_node *node)
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

/* @node, which was running, has left the storage.  Returns the node whose turn it is now, to be run
 * on the thread that owns it, or NULL.  @node may be reused at once. */
static inline struct srv_fence_node *srv_fence_leave(struct srv_fence *f, unsigned id,
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

#endif
