/* SPDX-License-Identifier: BSD-3-Clause */
/* From VALID to FREE: by the peer's invalidate, or by ours, which cannot both be.  The window's
 * owner calls in; completions come on the polling thread, posted() under the send lock.  Where they
 * meet the later of the two ends it.  An error leaves the window dead, and the connection has
 * failed. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frwr-priv.h"
#include "log.h"
#include "util.h"

/* ---- the peer's ---- */

bool frwr_wc_may_inv(const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV &&
	       !(wc->wc_flags & IBV_WC_WITH_IMM) &&
	       (wc->wc_flags & (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK));
}

static struct frwr *find(struct frwr_pool *pool, uint32_t rkey)
{
	unsigned low = 0, high = pool->n;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (pool->by_key[mid].key < rkey >> 8)
			low = mid + 1;
		else
			high = mid;
	}
	return low < pool->n && pool->by_key[low].key == rkey >> 8 ?
		       &pool->windows[pool->by_key[low].i] : NULL;
}

struct frwr *frwr_reminv(struct frwr_pool *pool, struct fab_conn *conn, const struct ibv_wc *wc)
{
	struct frwr *w;
	uint32_t word;

	if (pool->mode != FRWR_MW2 || !frwr_wc_may_inv(wc))
		return NULL;
	w = find(pool, wc->invalidated_rkey);
	if (!w)
		return NULL;
	word = frwr_word(w);
	do {
		/* RACE: posted() may be still to run. */
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
	do {
		if ((word & (FRWR_STATE | FRWR_POSTING)) != FRWR_MAPPED)
			return -EINVAL;
	} while (!frwr_step(w, &word, FRWR_MAPPED | FRWR_PEER_INV));
	return 0;
}

int frwr_answered(struct frwr *w, bool invalidated)
{
	uint32_t word = frwr_word(w);

	if (frwr_word_state(word) >= FRWR_DEAD_BIND)
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

/* ---- ours ---- */

void frwr_entry_over(struct frwr_entry *e, int rc)
{
	if (atomic_fetch_or(&e->events, FRWR_E_CALLED) & FRWR_E_CALLED)
		return;
	for (struct frwr *w = e->list; w; w = w->next) {
		if (w->unmap == e)
			w->unmap = NULL;
	}
	e->done(e->arg, rc);
}

/* One of the two that it takes has happened. */
static void entry_event(struct frwr_entry *e, unsigned event)
{
	const unsigned both = FRWR_E_POSTED | FRWR_E_COMPLETED;
	unsigned events = atomic_fetch_or(&e->events, event) | event;

	if ((events & both) == both)
		frwr_entry_over(e, events & FRWR_E_FAILED ? -ENOTCONN : 0);
}

static void window_gone(struct frwr *w)
{
	uint32_t word = frwr_word(w);

	while (frwr_word_state(word) == FRWR_INVALIDATING &&
	       !frwr_step(w, &word, FRWR_FREE | (word & FRWR_POSTING)))
		;
}

static void window_inv_failed(struct frwr *w)
{
	if (frwr_bury(w, FRWR_DEAD_INV))
		frwr_count(w->pool, flushed_inv);
}

/* Completions come in the order of the chain, and one that failed comes, signaled or not. */
void frwr_inv_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct frwr *w = container_of(cqe, struct frwr, inv_cqe);
	struct frwr_entry *e = w->unmap;
	bool ok = wc->status == IBV_WC_SUCCESS, all_ok = true;

	if (w->pool->mode == FRWR_MW1 &&
	    (wc->status == IBV_WC_MW_BIND_ERR || wc->status == IBV_WC_LOC_QP_OP_ERR))
		frwr_unable(w->pool, "fails to take them away");
	if (!ok && wc->status != IBV_WC_WR_FLUSH_ERR)
		log_dbg("frwr", "qp %u, window %u, key 0x%x: invalidate failed with status %d",
			wc->qp_num, w->index,
			atomic_load_explicit(&w->key, memory_order_relaxed), (int)wc->status);
	if (ok)
		window_gone(w);
	else
		window_inv_failed(w);
	if (!e || e->last != &w->wr)
		return;
	for (struct frwr *v = e->list; v; v = v->next) {
		if (v->unmap != e)
			continue;
		if (ok)
			window_gone(v);
		else
			window_inv_failed(v);
		all_ok &= frwr_state(v) == FRWR_FREE;
	}
	/* Not all, when one in front of a last that came through was flushed: that is no order. */
	entry_event(e, FRWR_E_COMPLETED | (all_ok ? 0 : FRWR_E_FAILED));
}

static void unmap_posted(struct frwr_entry *e, int rc)
{
	struct frwr_pool *pool = e->pool;

	if (rc) {
		frwr_count(pool, post_fail);
		if (rc != -ENOTCONN)
			frwr_count(pool, partial_post);
		if (rc == -EOPNOTSUPP)
			frwr_unable(pool, "refuses to take them away");
	}
	for (struct frwr *w = e->list; w; w = w->next) {
		uint32_t word = frwr_word(w), next;

		if (w->unmap != e)
			continue;
		if (rc && rc != -ENOTCONN) {
			frwr_bury(w, FRWR_DEAD);
			continue;
		}
		if (!rc) {
			if (pool->mode == FRWR_MW1)
				w->mw->rkey = w->revoke_key;
			frwr_count(pool, local_inv);
			if (w->wr.send_flags & IBV_SEND_SIGNALED)
				frwr_count(pool, signaled);
		}
		do {
			next = word & FRWR_STATE;
			if (rc && next == FRWR_INVALIDATING)
				next = FRWR_VALID;
		} while (!frwr_step(w, &word, next));
	}
	/* Else done() is the teardown's. */
	if (!rc)
		entry_event(e, FRWR_E_POSTED);
}

/* Returns 0 if there is something to take away, or why not. */
static int unmap_check(struct fab_conn *conn, const struct frwr *list)
{
	bool running = false, todo = false;

	for (const struct frwr *w = list; w; w = w->next) {
		uint32_t word = frwr_word(w);

		if (w->pool != list->pool || frwr_word_state(word) == FRWR_MAPPED)
			return word & FRWR_POSTING ? -EBUSY : -EINVAL;
		if (frwr_word_state(word) >= FRWR_DEAD_BIND)
			return -ENOTCONN;
		if (frwr_word_state(word) == FRWR_INVALIDATING)
			running = true;
		else if (word & (FRWR_POSTING | FRWR_PEER_INV))
			return -EBUSY;
		else if (frwr_word_state(word) == FRWR_VALID)
			todo = true;
		if (frwr_word_state(word) == FRWR_VALID && w->pool->mode == FRWR_MW2 &&
		    atomic_load_explicit(&w->conn, memory_order_relaxed) != conn)
			return -EINVAL;
	}
	return running || !todo ? -EALREADY : 0;
}

/* REREG and STATIC: with no request. */
static int unmap_now(struct frwr *list)
{
	int rc = 0;

	for (struct frwr *w = list; w; w = w->next) {
		int err = frwr_state(w) == FRWR_VALID ? frwr_map_end(w) : 0;

		rc = rc ? rc : err;
	}
	return rc ? rc : 1;
}

static void window_fill_unmap(struct frwr *w)
{
	if (w->pool->mode == FRWR_MW2) {
		memset(&w->wr, 0, sizeof(w->wr));
		w->wr.opcode = IBV_WR_LOCAL_INV;
		w->wr.invalidate_rkey = w->mw->rkey;
	} else {
		w->revoke_key = ibv_inc_rkey(w->mw->rkey);
		if (!(w->revoke_key & 0xff))
			frwr_count(w->pool, key_wraps);
		/* A region, although nothing of it is bound: some providers look (doc/verbs.md Q12). */
		frwr_wr_bind(w, &w->wr, w->revoke_key, w->mr, 0, 0, 0);
	}
	w->wr.wr_id = (uintptr_t)&w->inv_cqe;
}

int frwr_fill_unmap(struct frwr_entry *e, struct fab_conn *conn, struct frwr *list, unsigned flags,
		    frwr_done_fn *done, void *arg)
{
	struct ibv_send_wr *head = NULL, **tail = &head, *last = NULL;
	unsigned nwr = 0;
	int rc = unmap_check(conn, list);

	if (rc)
		return rc;
	if (!frwr_has_windows(list->pool->mode))
		return unmap_now(list);
	for (struct frwr *w = list; w; w = w->next) {
		uint32_t word = frwr_word(w);

		do {
			if (frwr_word_state(word) != FRWR_VALID)
				break;
		} while (!frwr_step(w, &word, FRWR_INVALIDATING | FRWR_POSTING));
		if (frwr_word_state(word) != FRWR_VALID)
			continue;
		window_fill_unmap(w);
		w->unmap = e;
		nwr++;
		last = &w->wr;
		if (flags & FRWR_SIGNAL_ALL)
			last->send_flags = IBV_SEND_SIGNALED;
		*tail = last;
		tail = &last->next;
	}
	/* RACE: since the check the peer was faster, or the connection or the pool died. */
	if (!last)
		return unmap_check(conn, list);
	last->send_flags = IBV_SEND_SIGNALED;
	*e = (struct frwr_entry){
		.first = head, .last = last, .nwr = nwr, .posted = unmap_posted,
		.pool = list->pool, .list = list, .done = done, .arg = arg,
	};
	return 0;
}
