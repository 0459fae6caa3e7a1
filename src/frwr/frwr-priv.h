/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of frwr.
 *
 * A window's state word: a generation, that counts maps, flags, and an enum frwr_state.  The word
 * changes by compare-and-swap, so of two threads that find a window in one state only one takes the
 * window further; the generation tells a state from the same state of the next IO. */
#ifndef FRWR_PRIV_H
#define FRWR_PRIV_H

#include "frwr.h"

#define FRWR_STATE 0x0fu
#define FRWR_POSTING 0x10u		/* filled in; posted() has not run */
#define FRWR_PEER_INV 0x20u		/* the peer was asked to invalidate and has not answered */
#define FRWR_GENERATION 0x100u		/* one, of the bits above the flags */

/* struct frwr_entry.events */
#define FRWR_E_POSTED 0x1u
#define FRWR_E_COMPLETED 0x2u
#define FRWR_E_FAILED 0x4u
#define FRWR_E_CALLED 0x8u		/* done() has been called, or is being */

#define frwr_count(pool, what)                                                                     \
	atomic_fetch_add_explicit(&(pool)->stats.what, 1, memory_order_relaxed)

/* Of the owner of a window, without a bus lock: who else looks may see the one before. */
static inline void frwr_count_own(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static inline uint32_t frwr_word(const struct frwr *w)
{
	return atomic_load_explicit(&w->state, memory_order_acquire);
}

static inline enum frwr_state frwr_word_state(uint32_t word)
{
	return (enum frwr_state)(word & FRWR_STATE);
}

/* From @word, with other flags and state @flags_state.  On failure @word is what it was instead. */
static inline bool frwr_step(struct frwr *w, uint32_t *word, uint32_t flags_state)
{
	uint32_t next = (*word & ~(FRWR_GENERATION - 1)) | flags_state;

	return atomic_compare_exchange_weak_explicit(&w->state, word, next, memory_order_acq_rel,
						     memory_order_acquire);
}

static inline bool frwr_has_windows(enum frwr_mode mode)
{
	return mode == FRWR_MW2 || mode == FRWR_MW1;
}

/* @w is dead from now on, without flags.  True if it was not before. */
bool frwr_bury(struct frwr *w);
/* The window with the number of @rkey, or NULL.  FRWR_MW2. */
struct frwr *frwr_pool_find(struct frwr_pool *pool, uint32_t rkey);
/* frwr-map.c, frwr-unmap.c: completions of the requests of a window. */
void frwr_bind_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);
void frwr_inv_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);
/* frwr-lesson.c: the device of @pool showed that it cannot do @what ("refuses to bind them"). */
void frwr_unable(struct frwr_pool *pool, const char *what);
/* Count the post of an entry that failed with @rc.  @what: as above. */
void frwr_post_failed(struct frwr_pool *pool, int rc, const char *what);
/* The key behind @key of the window of @w. */
uint32_t frwr_next_key(const struct frwr *w, uint32_t key);
/* All of @e is over; call done() unless somebody did.  @e is the caller's afterwards. */
void frwr_entry_over(struct frwr_entry *e, int rc);
/* The BIND_MW of @w as @wr, all else zero (doc/verbs.md Q13). */
void frwr_wr_bind(const struct frwr *w, struct ibv_send_wr *wr, uint32_t key, struct ibv_mr *mr,
		  uint64_t addr, uint64_t len, int access);

#endif
