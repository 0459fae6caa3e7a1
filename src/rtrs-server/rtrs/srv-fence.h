/* SPDX-License-Identifier: BSD-3-Clause */
/* The fence of a session: at most one request per buf_id is in the storage, and none that is older
 * than one that was there before, whichever path or life of a path it came from (doc/decisions.md
 * D6).
 *
 * A client that lost a path sends its unanswered requests again, under the same buf_id, on another
 * path.  Separate chunk memory per path keeps two copies from sharing bytes; the fence keeps their
 * order.  The older copy may be
 * - in the storage: per buf_id there is a queue in order of arrival, and only its head runs.  A
 *    node that is not the head waits until the node before it leaves, which is when the storage
 *    has done with it, and not when it was answered (its answer may have nowhere to go);
 * - in the queue, when its path dies: its owner drops it in its turn;
 * - in a socket or completion queue that nobody has read yet, when the other path is up already.
 *    So it may enter behind its successor, or when that has left and the buf_id has been used
 *    again.  Therefore a node has an order: the client's tag (man/rtrs-protocol.pod, "Tags").  When
 *    its turn comes, a node whose order is not newer than that of the last one that ran does not
 *    run.
 *
 * Only the head looks at the order of the last one, so the queue protects that too, and the check
 * and the turn are one decision: between them nobody else can run.
 *
 * A kernel's client has no tags.  Its requests are numbered when they are read from the fabric.  So
 * an older copy that is read first is never overtaken, whatever is done between reading and the
 * fence.  One that is read last cannot be told from its successor.  What is known is that a client
 * has given one path up when it uses a buf_id on two, so the one that had it before ends
 * unanswered (srv_fence_leave()), and its client sends it again.
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
#include <stdint.h>

struct srv_fence_order {
	uint32_t tag;			/* 0: none */
	uint32_t arrival;		/* srv_fence_arrive() */
};

struct srv_fence_node {
	_Atomic(struct srv_fence_node *) next;
	struct srv_fence_order order;	/* set before it enters */
};

struct srv_fence_slot {
	_Atomic(struct srv_fence_node *) tail;
	atomic_uint arrivals;
	struct srv_fence_order last;	/* that ran; the head's */
};

struct srv_fence {
	unsigned depth;
	struct srv_fence_slot *slots;
};

/* For the ids 0..@depth-1.  0 or -ENOMEM. */
int srv_fence_init(struct srv_fence *f, unsigned depth);
/* Every node must have left. */
void srv_fence_fini(struct srv_fence *f);

/* The number of a request for @id that has just been read: they grow, and wrap. */
static inline uint32_t srv_fence_arrive(struct srv_fence *f, unsigned id)
{
	assert(id < f->depth);
	return atomic_fetch_add_explicit(&f->slots[id].arrivals, 1, memory_order_relaxed) + 1;
}

/* A tag says which of two IOs of a session that came under one buf_id, over different paths, was
 * sent later.  Tags of a buf_id grow with each sending, skip 0 and wrap; two that are compared are
 * less than 2^31 sendings apart. */
static inline bool srv_fence_tag_newer(uint32_t tag, uint32_t than)
{
	return (int32_t)(tag - than) > 0;
}

/* Was @a sent later than @b, as far as can be told? */
static inline bool srv_fence_newer(const struct srv_fence_order *a, const struct srv_fence_order *b)
{
	if (a->tag && b->tag)
		return srv_fence_tag_newer(a->tag, b->tag);
	return (int32_t)(a->arrival - b->arrival) > 0;
}

/* @node, whose order is set, arrives for @id.  NULL: its turn has come.  Else the node in front of
 * it, which neither leaves nor changes until srv_fence_follow(): that is to be called soon, because
 * a thread may spin for it.  @node belongs to the fence until its own leave. */
static inline struct srv_fence_node *srv_fence_enter(struct srv_fence *f, unsigned id,
						     struct srv_fence_node *node)
{
	assert(id < f->depth);
	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	/* ORDER: acquire, so that what the former head did to shared state is seen by us; release,
	 * so that whoever swaps us out sees our next as NULL, and our order. */
	return atomic_exchange_explicit(&f->slots[id].tail, node, memory_order_acq_rel);
}

/* Wait behind @front: its leave will return @node. */
static inline void srv_fence_follow(struct srv_fence_node *front, struct srv_fence_node *node)
{
	/* RACE: since the exchange @front may be leaving; it waits for the store. */
	atomic_store_explicit(&front->next, node, memory_order_release);
}

/* @node's turn has come.  True: run it; it is the last one that ran now.  False: it is older than
 * one that has run, and leaves without running. */
static inline bool srv_fence_turn(struct srv_fence *f, unsigned id, struct srv_fence_node *node)
{
	struct srv_fence_order *last = &f->slots[id].last;

	if (!srv_fence_newer(&node->order, last))
		return false;
	*last = node->order;
	return true;
}

/* @node, whose turn it was, has left the storage and has not been answered.  Returns the node whose
 * turn it is now, to be run on the thread that owns it, or NULL.  That one came over another path:
 * if it is newer, then the client has given @node's path up, and @node must not be answered.  The
 * fence is done with @node. */
static inline struct srv_fence_node *srv_fence_leave(struct srv_fence *f, unsigned id,
						     struct srv_fence_node *node)
{
	struct srv_fence_node *self = node, *next;

	assert(id < f->depth);
	if (atomic_compare_exchange_strong_explicit(&f->slots[id].tail, &self, NULL,
						    memory_order_acq_rel, memory_order_acquire))
		return NULL;
	while (!(next = atomic_load_explicit(&node->next, memory_order_acquire)))
		;
	return next;
}

#endif
