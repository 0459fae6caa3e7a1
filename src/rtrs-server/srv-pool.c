/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one mapping and its buffers; thread of the pool.  Ends with its thread: the ring forgets its
 * fixed buffers when it is closed.  Memory that cannot be registered is used as it is (export-io
 * warns once). */
#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "export-io.h"
#include "srv-pool.h"
#include "util.h"

int srv_pool_init(struct srv_pool *pool, struct reactor *r, size_t size)
{
	void *base;

	pool->reactor = r;
	pool->stride = align_up(size, 4096);
	pool->len = pool->stride * SRV_POOL_BUFS;
	pool->nready = 0;
	pool->nread = 0;
	pool->serving = false;
	list_init(&pool->free);
	list_init(&pool->waiting);
	base = mmap(NULL, pool->len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	pool->base = base;
	return 0;
}

void srv_pool_fini(struct srv_pool *pool)
{
	unsigned nfree = 0;

	if (!pool->base)
		return;
	while (list_pop(&pool->free))
		nfree++;
	assert(nfree == pool->nready && list_empty(&pool->waiting));
	munmap(pool->base, pool->len);
	pool->base = NULL;
}

static void pool_grow(struct srv_pool *pool)
{
	uint8_t *slab = pool->base + pool->nready * pool->stride;
	int mem;

	if (pool->nready == SRV_POOL_BUFS)
		return;
	mem = export_io_mem_add(pool->reactor, slab, SRV_POOL_SLAB * pool->stride);
	for (unsigned i = 0; i < SRV_POOL_SLAB; i++) {
		struct srv_buf *buf = &pool->bufs[pool->nready++];

		buf->pool = pool;
		buf->addr = slab + i * pool->stride;
		buf->mem = mem >= 0 ? mem : -1;
		list_add_tail(&pool->free, &buf->link);
	}
}

static struct srv_buf *pool_take(struct srv_pool *pool, bool for_read)
{
	struct list *l;
	struct srv_buf *buf;

	if (list_empty(&pool->free))
		pool_grow(pool);
	l = list_pop(&pool->free);
	if (!l)
		return NULL;
	buf = list_entry(l, struct srv_buf, link);
	buf->for_read = for_read;
	pool->nread += for_read;
	return buf;
}

struct srv_buf *srv_pool_get_write(struct srv_pool *pool, struct srv_pool_waiter *waiter)
{
	struct srv_buf *buf = NULL;

	if (list_empty(&pool->waiting))
		buf = pool_take(pool, false);
	if (!buf)
		list_add_tail(&pool->waiting, &waiter->link);
	return buf;
}

struct srv_buf *srv_pool_get_read(struct srv_pool *pool)
{
	if (pool->nread >= SRV_POOL_BUFS / 2)
		return NULL;
	return pool_take(pool, true);
}

void srv_pool_put(struct srv_buf *buf)
{
	struct srv_pool *pool = buf->pool;

	pool->nread -= buf->for_read;
	list_add_head(&pool->free, &buf->link);
	if (pool->serving)	/* a waiter put its buffer back at once: the loop below goes on */
		return;
	pool->serving = true;
	while (!list_empty(&pool->waiting) && (buf = pool_take(pool, false))) {
		struct srv_pool_waiter *waiter =
			list_entry(list_pop(&pool->waiting), struct srv_pool_waiter, link);

		waiter->fn(waiter, buf);
	}
	pool->serving = false;
}
