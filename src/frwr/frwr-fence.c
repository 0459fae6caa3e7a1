/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the requests of a fence, [LOCAL_INV, BIND_MW] of a window that no request owns and no peer
 * knows; see frwr.h.  Under a connection's send lock.  It fails with its connection. */
#include <assert.h>

#include "frwr-priv.h"

void frwr_fence_init(struct frwr_fence *f, struct frwr *w, struct ibv_mr *mr)
{
	assert(w->pool->mode == FRWR_MW2 && frwr_state(w) == FRWR_FREE);
	*f = (struct frwr_fence){ .w = w, .mr = mr };
}

/* The first time nothing is bound that could be invalidated: a queue with nothing in it needs no
 * fence, and on any other the first bind is as safe as it would be without. */
struct ibv_send_wr *frwr_fence_front(struct frwr_fence *f, struct fab_conn *conn,
				     struct ibv_send_wr *chain)
{
	struct frwr *w = f->w;
	uint32_t key = ibv_inc_rkey(w->mw->rkey);

	if (frwr_state(w) != FRWR_FREE && frwr_state(w) != FRWR_VALID)
		return chain;
	atomic_store_explicit(&w->conn, conn, memory_order_relaxed);
	frwr_wr_bind(w, &f->bind, key, f->mr, fab_mr_iova(f->mr), 1, 0);
	f->bind.wr_id = (uintptr_t)&w->bind_cqe;
	f->bind.next = chain;
	if (frwr_state(w) == FRWR_FREE)
		return &f->bind;
	frwr_wr_inv(w, &f->inv, w->mw->rkey);
	f->inv.wr_id = (uintptr_t)&w->inv_cqe;
	f->inv.next = &f->bind;
	return &f->inv;
}

/* A key of its own that nobody was told cannot be invalidated by a peer: frwr_reminv() knows it as
 * one that is not mapped. */
void frwr_fence_posted(struct frwr_fence *f, int rc)
{
	struct frwr *w = f->w;
	uint32_t word = frwr_word(w);

	if (rc) {
		frwr_bury(w, FRWR_DEAD);
		return;
	}
	w->mw->rkey = f->bind.bind_mw.rkey;
	while (frwr_word_state(word) == FRWR_FREE && !frwr_step(w, &word, FRWR_VALID))
		;
}
