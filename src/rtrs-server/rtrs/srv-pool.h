/* SPDX-License-Identifier: BSD-3-Clause */
/* Private buffers of one thread (doc/decisions.md D8, --invalidate=copy), for the storage only: no
 * device has to know them.
 *
 * The buffers lie in one reserved range of address space, which is filled in slabs when buffers are
 * first needed; each slab is made known to the thread's ring.  The most recently used buffer is
 * handed out first, so that a light load stays in the cache.
 *
 * The storage may hold a buffer for ever, and must not take the buffers of other storage with it.
 * So each store has a share: at most SRV_POOL_SHARE times as many buffers as are free.  That is
 * three quarters of the pool for one store alone, and a fair part when many want some.  One buffer
 * is kept for each store that has none, at most SRV_POOL_KEPT in all.  Beyond its share a store's
 * requests wait in order of arrival, and stores take turns.
 *
 * All functions: thread of the pool, unless they say otherwise. */
#ifndef SRV_POOL_H
#define SRV_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct reactor;

#define SRV_POOL_BUFS 64
#define SRV_POOL_SLAB_LEN (1u << 20)	/* bytes, or one buffer where that is larger */
#define SRV_POOL_SHARE 3
#define SRV_POOL_KEPT (SRV_POOL_BUFS / 4)	/* what is left to others by one that is alone */

struct srv_pool;

/* The requests of one store. */
struct srv_pool_share {
	struct list link;		/* in srv_pool.hungry, while somebody waits */
	struct list waiting;		/* struct srv_pool_waiter */
	unsigned held;
};

struct srv_buf {
	struct list link;
	struct srv_pool *pool;
	void *addr;
	int mem;			/* export-io's handle, or -1 */
	struct srv_pool_share *share;	/* whose it is */
};

/* Somebody who waits for a buffer. */
struct srv_pool_waiter {
	struct list link;
	/* Gets @buf and with it the duty to put it back; may call srv_pool_put(). */
	void (*fn)(struct srv_pool_waiter *waiter, struct srv_buf *buf);
};

struct srv_pool {
	struct reactor *reactor;
	uint8_t *base;
	size_t len, stride;
	unsigned slab;			/* buffers that the ring learns of, and pins, at once */
	unsigned nready;		/* buffers that have been filled in */
	unsigned ntaken;
	bool serving;
	struct list free;
	struct srv_pool_share **shares;	/* by store.index; NULL: there is none */
	unsigned nslots;
	unsigned nidle;			/* shares that hold none */
	struct list hungry;		/* struct srv_pool_share: whose turn is next */
	struct srv_buf bufs[SRV_POOL_BUFS];
};

/* Reserve address space for buffers of @size bytes.  Any thread.  0 or -ENOMEM. */
int srv_pool_init(struct srv_pool *pool, struct reactor *r, size_t size);
/* Every buffer must be back.  Any thread, when @pool's reactor does not run any more. */
void srv_pool_fini(struct srv_pool *pool);

/* The store with the index @share comes; 0 or -ENOMEM.  And goes, when the store holds no buffer and
 * waits for none. */
int srv_pool_share_add(struct srv_pool *pool, unsigned share);
void srv_pool_share_del(struct srv_pool *pool, unsigned share);

/* A buffer for a request of store @share, now or later through @waiter->fn (never from
 * inside this call): returns the buffer, or NULL when @waiter was queued. */
struct srv_buf *srv_pool_get(struct srv_pool *pool, unsigned share, struct srv_pool_waiter *waiter);
/* Give @buf back; waiters are served before this returns. */
void srv_pool_put(struct srv_buf *buf);

#endif
