/* SPDX-License-Identifier: BSD-3-Clause */
/* A window's way from VALID to FREE: by the peer's invalidate, or by ours, never by both.  The
 * window's owner calls in; completions come on the polling thread, posted() under the send lock.
 * The later of completion and posted() ends the unmap.  After an error the window is dead, and the
 * connection has failed. */
#include <errno.h>
#include <string.h>

#include "frwr-priv.h"
#include "log.h"
#include "util.h"

/* ---- the peer's invalidate ---- */

bool frwr_wc_may_inv(const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV &&
	       !(wc->wc_flags & IBV_WC_WITH_IMM) &&
	       (wc->wc_flags & (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK));
}

struct frwr *frwr_reminv(struct frwr_pool *pool, struct fab_conn *conn, const struct ibv_wc *wc)
{
	struct frwr *w;
	uint32_t word;

	if (pool->mode != FRWR_MW2 || !frwr_wc_may_inv(wc))
		return NULL;
	w = frwr_pool_find(pool, wc->invalidated_rkey);
	if (!w)
		return NULL;
	word = frwr_word(w);
	do {
		/* RACE: posted() may not have run yet. */
		if (frwr_word_state(word) != FRWR_VALID &&
		    (word & (FRWR_STATE | FRWR_POSTING)) != (FRWR_MAPPED | FRWR_POSTING))
			return NULL;
		if (atomic_load_explicit(&w->conn, memory_order_relaxed) != conn ||
		    atomic_load_explicit(&w->key, memory_order_relaxed) != wc->invalidated_rkey)
			return NULL;
	} while (!frwr_step(w, &word, FRWR_FREE | (word & FRWR_POSTING)));
	frwr_count(pool, remote_inv);
	if (!(wc->wc_flags & IBV_WC_WITH_INV))
		frwr_count(pool, quirk_inv_flag);
	return w;
}

int frwr_expect_reminv(struct frwr *w)
{
	uint32_t word = frwr_word(w);

	if (w->pool->mode != FRWR_MW2)
		return -EOPNOTSUPP;
	if ((word & (FRWR_STATE | FRWR_POSTING)) != FRWR_MAPPED)
		return -EINVAL;
	/* Only a kill may have come in between: dead with this flag is as dead. */
	atomic_fetch_or_explicit(&w->state, FRWR_PEER_INV, memory_order_acq_rel);
	return 0;
}

int frwr_answered(struct frwr *w, bool invalidated)
{
	uint32_t word = frwr_word(w);

	if (frwr_word_state(word) >= FRWR_DEAD)
		return -ENOTCONN;
	if (!invalidated) {
		atomic_fetch_and_explicit(&w->state, ~FRWR_PEER_INV, memory_order_acq_rel);
		return 0;
	}
	if (frwr_word_state(word) == FRWR_FREE)
		return 0;
	frwr_count(w->pool, remote_inv_missing);
	return -EPROTO;
}

/* ---- our invalidate ---- */

void frwr_entry_over(struct frwr_entry *e, int rc)
{
	if (atomic_fetch_or(&e->events, FRWR_E_CALLED) & FRWR_E_CALLED)
		return;
	e->list->unmap = NULL;
	e->done(e->arg, rc);
}

/* Note @event of @e.  An entry is over when its chain was posted and its invalidate has completed,
 * in either order. */
static void entry_event(struct frwr_entry *e, unsigned event)
{
	const unsigned both = FRWR_E_POSTED | FRWR_E_COMPLETED;
	unsigned events = atomic_fetch_or(&e->events, event) | event;

	if ((events & both) == both)
		frwr_entry_over(e, events & FRWR_E_FAILED ? -ENOTCONN : 0);
}

void frwr_inv_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct frwr *w = container_of(cqe, struct frwr, inv_cqe);
	bool ok = wc->status == IBV_WC_SUCCESS;
	struct frwr_entry *e = w->unmap;
	uint32_t word = frwr_word(w);

	if (w->pool->mode == FRWR_MW1 &&
	    (wc->status == IBV_WC_MW_BIND_ERR || wc->status == IBV_WC_LOC_QP_OP_ERR))
		frwr_unable(w->pool, "fails to take them away");
	if (!ok && wc->status != IBV_WC_WR_FLUSH_ERR)
		log_dbg("frwr", "qp %u, window %u, key 0x%x: invalidate failed with status %d",
			wc->qp_num, w->index,
			atomic_load_explicit(&w->key, memory_order_relaxed), (int)wc->status);
	while (ok && frwr_word_state(word) == FRWR_INVALIDATING &&
	       !frwr_step(w, &word, FRWR_FREE | (word & FRWR_POSTING)))
		;
	if (!ok && frwr_bury(w))
		frwr_count(w->pool, flushed_inv);
	if (e)
		entry_event(e, FRWR_E_COMPLETED | (frwr_state(w) == FRWR_FREE ? 0 : FRWR_E_FAILED));
}

static void unmap_posted(struct frwr_entry *e, int rc)
{
	struct frwr *w = e->list;
	uint32_t word = frwr_word(w), next;

	if (rc)
		frwr_post_failed(e->pool, rc, "refuses to take them away");
	if (w->unmap != e)
		return;
	if (rc && rc != -ENOTCONN) {
		frwr_bury(w);
		return;
	}
	if (!rc) {
		if (e->pool->mode == FRWR_MW1)
			w->mw->rkey = w->revoke_key;
		frwr_count(e->pool, local_inv);
	}
	do {
		next = word & FRWR_STATE;
		if (rc && next == FRWR_INVALIDATING)
			next = FRWR_VALID;
	} while (!frwr_step(w, &word, next));
	/* After a failed post frwr_pool_kill() calls done(). */
	if (!rc)
		entry_event(e, FRWR_E_POSTED);
}

/* Returns 0 if @w, whose state word is @word, can be taken away on @conn, or the reason as
 * -errno. */
static int unmap_check(const struct fab_conn *conn, const struct frwr *w, uint32_t word)
{
	enum frwr_state state = frwr_word_state(word);

	if (state == FRWR_MAPPED)
		return word & FRWR_POSTING ? -EBUSY : -EINVAL;
	if (state == FRWR_DEAD)
		return -ENOTCONN;
	if (state == FRWR_INVALIDATING)
		return -EALREADY;
	if (word & (FRWR_POSTING | FRWR_PEER_INV))
		return -EBUSY;
	if (state == FRWR_FREE)
		return -EALREADY;
	return w->pool->mode == FRWR_MW2 &&
	       atomic_load_explicit(&w->conn, memory_order_relaxed) != conn ? -EINVAL : 0;
}

static void window_fill_unmap(struct frwr *w)
{
	if (w->pool->mode == FRWR_MW2) {
		memset(&w->wr, 0, sizeof(w->wr));
		w->wr.opcode = IBV_WR_LOCAL_INV;
		w->wr.invalidate_rkey = w->mw->rkey;
	} else {
		w->revoke_key = frwr_next_key(w, w->mw->rkey);
		/* A bind to nothing names a region, too (doc/verbs.md Q12). */
		frwr_wr_bind(w, &w->wr, w->revoke_key, w->mr, 0, 0, 0);
	}
	w->wr.wr_id = (uintptr_t)&w->inv_cqe;
	w->wr.send_flags = IBV_SEND_SIGNALED;
}

int frwr_fill_unmap(struct frwr_entry *e, struct fab_conn *conn, struct frwr *w,
		    frwr_done_fn *done, void *arg)
{
	uint32_t word = frwr_word(w);
	int rc = unmap_check(conn, w, word);

	if (!rc && !frwr_has_windows(w->pool->mode)) {
		rc = frwr_map_end(w);
		return rc ? rc : 1;
	}
	/* RACE: the peer may invalidate first, or the connection or the pool may die. */
	while (!rc && !frwr_step(w, &word, FRWR_INVALIDATING | FRWR_POSTING))
		rc = unmap_check(conn, w, word);
	if (rc)
		return rc;
	window_fill_unmap(w);
	w->unmap = e;
	*e = (struct frwr_entry){
		.first = &w->wr, .last = &w->wr, .posted = unmap_posted,
		.pool = w->pool, .list = w, .done = done, .arg = arg,
	};
	return 0;
}
