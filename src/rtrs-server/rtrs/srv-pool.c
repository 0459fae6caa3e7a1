/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one mapping and the buffers in the mapping; thread of the pool.  Ends with the thread: a
 * ring that is closed forgets fixed buffers.  Memory that cannot be registered is used
 * unregistered (export-io warns once). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "export-ring.h"
#include "srv-pool.h"
#include "util.h"

int srv_pool_init(struct srv_pool *pool, struct reactor *r, size_t size)
{
	void *base;

	pool->reactor = r;
	pool->stride = align_up(size, 4096);
	pool->len = pool->stride * SRV_POOL_BUFS;
	pool->slab = MIN(MAX(SRV_POOL_SLAB_LEN / pool->stride, (size_t)1), (size_t)SRV_POOL_BUFS);
	pool->nready = 0;
	pool->ntaken = 0;
	pool->serving = false;
	pool->shares = NULL;
	pool->nslots = pool->nidle = 0;
	list_init(&pool->free);
	list_init(&pool->hungry);
	base = mmap(NULL, pool->len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	pool->base = base;
	return 0;
}

void srv_pool_share_del(struct srv_pool *pool, unsigned share_no)
{
	struct srv_pool_share *share = pool->shares[share_no];

	assert(!share->held && list_empty(&share->waiting));
	pool->shares[share_no] = NULL;
	pool->nidle--;
	free(share);
}

void srv_pool_fini(struct srv_pool *pool)
{
	unsigned nfree = 0;

	if (!pool->base)
		return;
	while (list_pop(&pool->free))
		nfree++;
	assert(nfree == pool->nready && list_empty(&pool->hungry));
	munmap(pool->base, pool->len);
	for (unsigned i = 0; i < pool->nslots; i++) {
		if (pool->shares[i])
			srv_pool_share_del(pool, i);
	}
	free(pool->shares);
	pool->base = NULL;
}

static int pool_make_slot(struct srv_pool *pool, unsigned slot)
{
	struct srv_pool_share **shares;

	if (slot < pool->nslots)
		return 0;
	shares = realloc(pool->shares, (slot + 1) * sizeof(struct srv_pool_share *));
	if (!shares)
		return -ENOMEM;
	for (unsigned i = pool->nslots; i <= slot; i++)
		shares[i] = NULL;
	pool->shares = shares;
	pool->nslots = slot + 1;
	return 0;
}

int srv_pool_share_add(struct srv_pool *pool, unsigned share_no)
{
	struct srv_pool_share *share = calloc(1, sizeof(*share));

	if (!share || pool_make_slot(pool, share_no)) {
		free(share);
		return -ENOMEM;
	}
	assert(!pool->shares[share_no]);
	list_init(&share->link);
	list_init(&share->waiting);
	pool->shares[share_no] = share;
	pool->nidle++;
	return 0;
}

static void pool_grow(struct srv_pool *pool)
{
	unsigned n = MIN(pool->slab, SRV_POOL_BUFS - pool->nready);
	uint8_t *slab = pool->base + pool->nready * pool->stride;
	int mem;

	if (!n)
		return;
	mem = export_ring_mem_add(pool->reactor, slab, n * pool->stride);
	for (unsigned i = 0; i < n; i++) {
		struct srv_buf *buf = &pool->bufs[pool->nready++];

		buf->pool = pool;
		buf->addr = slab + i * pool->stride;
		buf->mem = mem >= 0 ? mem : -1;
		list_add_tail(&pool->free, &buf->link);
	}
}

static unsigned pool_left(const struct srv_pool *pool)
{
	return SRV_POOL_BUFS - pool->ntaken;
}

/* Take a free buffer for @share.  The pool has a buffer left. */
static struct srv_buf *pool_take(struct srv_pool *pool, struct srv_pool_share *share)
{
	struct srv_buf *buf;

	if (list_empty(&pool->free))
		pool_grow(pool);
	buf = list_pop_entry(&pool->free, struct srv_buf, link);
	buf->share = share;
	pool->ntaken++;
	if (!share->held++)
		pool->nidle--;
	return buf;
}

static bool share_may_take(const struct srv_pool *pool, const struct srv_pool_share *share)
{
	unsigned left = pool_left(pool);

	if (!share->held)
		return left > 0;
	return left > MIN(pool->nidle, (unsigned)SRV_POOL_KEPT) &&
	       share->held < SRV_POOL_SHARE * left;
}

struct srv_buf *srv_pool_get(struct srv_pool *pool, unsigned share_no,
			     struct srv_pool_waiter *waiter)
{
	struct srv_pool_share *share = pool->shares[share_no];

	if (list_empty(&share->waiting)) {
		if (share_may_take(pool, share))
			return pool_take(pool, share);
		list_add_tail(&pool->hungry, &share->link);
	}
	list_add_tail(&share->waiting, &waiter->link);
	return NULL;
}

/* Serve the first waiter of the first share that may take another buffer.  False: no share may. */
static bool pool_serve_one(struct srv_pool *pool)
{
	struct srv_pool_waiter *waiter;
	struct srv_pool_share *share;

	list_for_each(share, &pool->hungry, link) {
		if (!share_may_take(pool, share))
			continue;
		list_del(&share->link);
		waiter = list_pop_entry(&share->waiting, struct srv_pool_waiter, link);
		if (!list_empty(&share->waiting))
			list_add_tail(&pool->hungry, &share->link);
		waiter->fn(waiter, pool_take(pool, share));
		return true;
	}
	return false;
}

void srv_pool_put(struct srv_buf *buf)
{
	struct srv_pool *pool = buf->pool;

	pool->ntaken--;
	if (!--buf->share->held)
		pool->nidle++;
	list_add_head(&pool->free, &buf->link);
	if (pool->serving)	/* a waiter put its buffer back at once: the loop below goes on */
		return;
	pool->serving = true;
	while (pool_serve_one(pool))
		;
	pool->serving = false;
}
