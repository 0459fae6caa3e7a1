/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of frwr: the state word of a window, and functions that its files share.
 *
 * A window's state word is a generation, which counts maps, flags, and an enum frwr_state.  The
 * word changes by compare-and-swap: of two threads that find a window in one state only one takes
 * the window further.  The generation tells a state from the same state of the next IO. */
#ifndef FRWR_PRIV_H
#define FRWR_PRIV_H

#include "frwr.h"

#define FRWR_STATE 0x0fu
#define FRWR_POSTING 0x10u		/* filled in; posted() has not run */
#define FRWR_PEER_INV 0x20u		/* the peer was asked to invalidate and has not answered */
#define FRWR_GENERATION 0x100u		/* 1 in the bits above the flags */

/* struct frwr_entry.events */
#define FRWR_E_POSTED 0x1u
#define FRWR_E_COMPLETED 0x2u
#define FRWR_E_FAILED 0x4u
#define FRWR_E_CALLED 0x8u		/* done() has been called, or is being */

#define frwr_count(pool, what)                                                                     \
	atomic_fetch_add_explicit(&(pool)->stats.what, 1, memory_order_relaxed)

/* Add 1 to a counter of the owner of a window, without a bus lock: other threads only read, and may
 * see the count before. */
static inline void frwr_count_own(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* The state word of @w now. */
static inline uint32_t frwr_word(const struct frwr *w)
{
	return atomic_load_explicit(&w->state, memory_order_acquire);
}

/* The state in @word. */
static inline enum frwr_state frwr_word_state(uint32_t word)
{
	return (enum frwr_state)(word & FRWR_STATE);
}

/* Change the flags and the state in the word of @w from @word to @flags_state; the generation
 * stays.  Weak: on failure, which may be spurious, @word becomes the current word. */
static inline bool frwr_step(struct frwr *w, uint32_t *word, uint32_t flags_state)
{
	uint32_t next = (*word & ~(FRWR_GENERATION - 1)) | flags_state;

	return atomic_compare_exchange_weak_explicit(&w->state, word, next, memory_order_acq_rel,
						     memory_order_acquire);
}

/* True if @mode opens memory with windows, by work requests. */
static inline bool frwr_has_windows(enum frwr_mode mode)
{
	return mode == FRWR_MW2 || mode == FRWR_MW1;
}

/* Make @w dead, without flags.  True if @w was not dead before. */
bool frwr_bury(struct frwr *w);
/* The window with the number of @rkey, or NULL.  FRWR_MW2. */
struct frwr *frwr_pool_find(struct frwr_pool *pool, uint32_t rkey);
/* frwr-map.c: the bind of a window has completed. */
void frwr_bind_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);
/* frwr-unmap.c: the invalidate of a window, or the bind to nothing, has completed. */
void frwr_inv_wc(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc);
/* frwr-pool.c: learn that the device of @pool cannot do @what ("refuses to bind them"). */
void frwr_unable(struct frwr_pool *pool, const char *what);
/* Count an entry whose post failed with @rc; after -EOPNOTSUPP frwr_unable() learns @what. */
void frwr_post_failed(struct frwr_pool *pool, int rc, const char *what);
/* The key that follows @key in the window of @w. */
uint32_t frwr_next_key(const struct frwr *w, uint32_t key);
/* End @e: call done() with @rc, unless done() was called.  Afterwards @e is the caller's. */
void frwr_entry_over(struct frwr_entry *e, int rc);
/* Make @wr the BIND_MW of @w, with every other field zero (doc/verbs.md Q13). */
void frwr_wr_bind(const struct frwr *w, struct ibv_send_wr *wr, uint32_t key, struct ibv_mr *mr,
		  uint64_t addr, uint64_t len, int access);

#endif
