/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the windows of a path, one for each slot, so the pool needs no free list and no lock.
 * Created with the path's connections, on any thread; killed and destroyed when these have drained.
 * Windows are never repaired.  A window that the device refuses to free stays, with the pool, for
 * another call. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "frwr-priv.h"
#include "log.h"

void frwr_pool_zero_based(struct frwr_pool *pool)
{
	assert(pool->mode != FRWR_STATIC && pool->mode != FRWR_SUSPEND);
	pool->zero_based = true;
}

enum frwr_state frwr_state(const struct frwr *w)
{
	return frwr_word_state(frwr_word(w));
}

static int window_init(struct frwr_pool *pool, unsigned i)
{
	struct frwr *w = &pool->windows[i];

	w->pool = pool;
	w->index = i;
	w->bind_cqe.done = frwr_bind_wc;
	w->inv_cqe.done = frwr_inv_wc;
	if (pool->mode == FRWR_REREG) {
		/* If a region cannot be given another range, each IO registers one. */
		w->mr = fab_reg_mr(pool->pd, NULL, 0, 0);
		return w->mr || errno == ENOTSUP ? 0 : -errno;
	}
	if (!frwr_has_windows(pool->mode))
		return 0;
	w->mw = fab_alloc_mw(pool->pd, pool->mode == FRWR_MW2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
	if (!w->mw)
		return errno ? -errno : -ENOMEM;
	pool->by_key[i] = (struct frwr_index){ w->mw->rkey >> 8, i };
	return 0;
}

static int by_key_cmp(const void *a, const void *b)
{
	const struct frwr_index *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

struct frwr *frwr_pool_find(struct frwr_pool *pool, uint32_t rkey)
{
	const struct frwr_index key = { .key = rkey >> 8 };
	const struct frwr_index *hit = bsearch(&key, pool->by_key, pool->n, sizeof(key),
					       by_key_cmp);

	return hit ? &pool->windows[hit->i] : NULL;
}

int frwr_pool_create(struct frwr_pool **out, struct fab_pd *pd, enum frwr_mode mode, unsigned n)
{
	struct frwr_pool *pool = calloc(1, sizeof(*pool));
	int rc = -ENOMEM;

	if (!pool)
		return -ENOMEM;
	pool->pd = pd;
	pool->mode = mode;
	pool->windows = calloc(n, sizeof(*pool->windows));
	pool->by_key = calloc(n, sizeof(*pool->by_key));
	if (!pool->windows || !pool->by_key)
		goto fail;
	for (pool->n = 0; pool->n < n; pool->n++) {
		rc = window_init(pool, pool->n);
		if (rc)
			goto fail;
	}
	if (frwr_has_windows(mode))
		qsort(pool->by_key, n, sizeof(*pool->by_key), by_key_cmp);
	*out = pool;
	return 0;
fail:
	/* A window that the device refuses to free here is leaked. */
	while (pool->n) {
		struct frwr *w = &pool->windows[--pool->n];

		fab_dealloc_mw(w->mw);
		fab_dereg_mr(w->mr);
	}
	free(pool->by_key);
	free(pool->windows);
	free(pool);
	return rc;
}

bool frwr_bury(struct frwr *w)
{
	uint32_t word = frwr_word(w);

	do {
		if (frwr_word_state(word) == FRWR_DEAD)
			return false;
	} while (!frwr_step(w, &word, FRWR_DEAD));
	return true;
}

void frwr_pool_kill(struct frwr_pool *pool)
{
	for (unsigned i = 0; i < pool->n; i++)
		frwr_bury(&pool->windows[i]);
	/* Call back when all windows are dead: a callback may look at other windows. */
	for (unsigned i = 0; i < pool->n; i++) {
		if (pool->windows[i].unmap)
			frwr_entry_over(pool->windows[i].unmap, -ENOTCONN);
	}
}

unsigned frwr_pool_destroy(struct frwr_pool *pool)
{
	unsigned left = 0;
	int rc;

	if (!pool)
		return 0;
	frwr_pool_kill(pool);
	for (unsigned i = 0; i < pool->n; i++) {
		struct frwr *w = &pool->windows[i];

		if (w->mw) {
			rc = fab_dealloc_mw(w->mw);
			if (rc) {
				log_warn("frwr",
					 "window %u, key 0x%x: the device refused to free it: %d",
					 i, w->mw->rkey, rc);
				frwr_count(pool, orphaned);
				left++;
				continue;
			}
			w->mw = NULL;
		}
		if (!frwr_has_windows(pool->mode) && w->mr) {
			fab_dereg_mr(w->mr);
			w->mr = NULL;
		}
	}
	if (left)
		return left;
	free(pool->by_key);
	free(pool->windows);
	free(pool);
	return 0;
}

void frwr_stats(const struct frwr_pool *pool, struct frwr_stats *s)
{
	const _Atomic uint64_t *from = (const void *)&pool->stats;
	_Atomic uint64_t *to = (void *)s;

	for (unsigned i = 0; i < sizeof(*s) / sizeof(*to); i++)
		to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
	for (unsigned i = 0; i < pool->n; i++) {
		const struct frwr *w = &pool->windows[i];

		s->mapped += atomic_load_explicit(&w->mapped, memory_order_relaxed);
		s->local_inv += atomic_load_explicit(&w->revoked, memory_order_relaxed);
	}
}
