/* SPDX-License-Identifier: BSD-3-Clause */
/* The fence of a session.  For each buf_id at most one request is in the storage, and never a
 * request older than any earlier one there, from whichever path or life of a path
 * (doc/decisions.md D6).
 *
 * A client that lost a path sends the unanswered requests again, under the same buf_id, on another
 * path.  Separate chunk memory per path keeps two copies from sharing bytes; the fence keeps the
 * order of the copies.  The older copy may be
 *   - in the storage: each buf_id has a queue in order of arrival, and only the head runs.  Any
 *     other node waits until the node in front leaves.  A node leaves when the storage has done
 *     with the request, not when the request is answered (the answer may have nowhere to go);
 *   - in the queue, when the path dies: the owner drops the copy in the copy's turn;
 *   - in a socket or completion queue, unread, when the other path is up already.  This copy may
 *     enter behind the successor, or when the successor has left and the buf_id has been used
 *     again.  Therefore a node has an order: the client's tag (man/rtrs-protocol.pod, "Tags").  In
 *     its turn a node runs only if the node's order is newer than the order of the last node to
 *     run.
 * Only the head looks at the order of the last node, so the queue protects this order, too.  The
 * check and the turn are one decision: no other node can run in between.
 *
 * A kernel's client has no tags.  The server numbers such requests when reading each from the
 * fabric.  So an older copy that is read first is never overtaken, whatever happens between
 * reading and the fence.  An older copy that is read last looks like a successor.  A client that
 * uses a buf_id on two paths has given the first path up, though: the earlier node of the buf_id
 * ends unanswered (srv_fence_leave()), and the client sends again.
 *
 * The queue is an MCS queue: an entering node becomes the tail by a swap, and links itself behind
 * the former tail.  Lock-free: one atomic exchange to enter, and one compare-exchange to leave
 * when no node waits; any thread.  In leave() the loser of a race with an entering thread waits
 * for the next store of this thread: nodes are reused, so leave() must not return while another
 * thread is still about to link to @node. */
#ifndef SRV_FENCE_H
#define SRV_FENCE_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct srv_fence_order {
	uint32_t tag;			/* 0: none */
	uint32_t arrival;		/* srv_fence_arrive() */
};

struct srv_fence_node {
	_Atomic(struct srv_fence_node *) next;
	struct srv_fence_order order;	/* set before srv_fence_enter() */
};

struct srv_fence_slot {
	_Atomic(struct srv_fence_node *) tail;
	atomic_uint arrivals;
	struct srv_fence_order last;	/* order of the last node that ran; only the head reads and
					 * writes */
};

struct srv_fence {
	unsigned depth;
	struct srv_fence_slot *slots;
};

/* Make slots for the ids 0..@depth-1.  0 or -ENOMEM. */
static inline int srv_fence_init(struct srv_fence *f, unsigned depth)
{
	f->slots = calloc(depth, sizeof(*f->slots));
	if (!f->slots)
		return -ENOMEM;
	f->depth = depth;
	return 0;
}

/* Free the slots, which every node must have left. */
static inline void srv_fence_fini(struct srv_fence *f)
{
	for (unsigned i = 0; i < f->depth; i++)
		assert(!atomic_load(&f->slots[i].tail));
	free(f->slots);
	f->slots = NULL;
	f->depth = 0;
}


/* The number of a request for @id that has just been read; numbers grow, and wrap. */
static inline uint32_t srv_fence_arrive(struct srv_fence *f, unsigned id)
{
	assert(id < f->depth);
	return atomic_fetch_add_explicit(&f->slots[id].arrivals, 1, memory_order_relaxed) + 1;
}

/* True if @tag was sent later than @than.  A tag orders two IOs of a session under one buf_id over
 * different paths.  Tags of a buf_id grow with each sending, skip 0 and wrap; two compared tags
 * are less than 2^31 sendings apart. */
static inline bool srv_fence_tag_newer(uint32_t tag, uint32_t than)
{
	return (int32_t)(tag - than) > 0;
}

/* True if @a was sent later than @b, as far as tags, or else arrivals, can tell. */
static inline bool srv_fence_newer(const struct srv_fence_order *a, const struct srv_fence_order *b)
{
	if (a->tag && b->tag)
		return srv_fence_tag_newer(a->tag, b->tag);
	return (int32_t)(a->arrival - b->arrival) > 0;
}

/* Enter @node, whose order is set, into the queue of @id.  Returns NULL if the turn of @node has
 * come, or else the node in front.  The front node neither leaves nor changes until
 * srv_fence_follow(): call srv_fence_follow() soon, because a thread may spin for the link.  The
 * fence owns @node until srv_fence_leave() of @node. */
static inline struct srv_fence_node *srv_fence_enter(struct srv_fence *f, unsigned id,
						     struct srv_fence_node *node)
{
	assert(id < f->depth);
	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	/* ORDER: acquire, to see the former head's changes of shared state; release, to show next
	 * as NULL, and the order, to the thread that swaps @node out. */
	return atomic_exchange_explicit(&f->slots[id].tail, node, memory_order_acq_rel);
}

/* Wait behind @front: srv_fence_leave() of @front will return @node. */
static inline void srv_fence_follow(struct srv_fence_node *front, struct srv_fence_node *node)
{
	/* RACE: since the exchange @front may be leaving, and waits for this store. */
	atomic_store_explicit(&front->next, node, memory_order_release);
}

/* Decide about @node, whose turn has come.  True: run @node, from now on the last node to run.
 * False: @node is older than the last node, and leaves without running. */
static inline bool srv_fence_turn(struct srv_fence *f, unsigned id, struct srv_fence_node *node)
{
	struct srv_fence_order *last = &f->slots[id].last;

	if (!srv_fence_newer(&node->order, last))
		return false;
	*last = node->order;
	return true;
}

/* Take @node, whose turn it was, out of the queue: the request has left the storage and has not
 * been answered.  Returns the node whose turn comes next, to be run on its own thread, or NULL.
 * The next node came over another path: if newer, the client has given the path of @node up, and
 * @node must not be answered.  The fence is done with @node. */
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
