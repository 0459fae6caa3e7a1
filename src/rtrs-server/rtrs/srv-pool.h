/* SPDX-License-Identifier: BSD-3-Clause */
/* Private buffers of one thread (doc/decisions.md D8, --invalidate=copy), for the storage only: no
 * device has to know the buffers.
 *
 * The buffers lie in one reserved range of address space, which is filled in slabs when buffers
 * are first needed; each slab is made known to the thread's ring.  The most recently used buffer
 * is handed out first, so that a light load stays in the cache.
 *
 * The storage may hold a buffer for ever, and must not take the buffers of other storage along.  So
 * each store has a share: at most SRV_POOL_SHARE times as many buffers as are free.  This is three
 * quarters of the pool for one share alone, and a fair part when many want buffers.  The pool
 * keeps a buffer for each share without buffers, at most SRV_POOL_KEPT in all.  Requests beyond
 * their share wait in order of arrival, and shares take turns.
 *
 * All functions: thread of the pool, unless their comment names another. */
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
#define SRV_POOL_KEPT (SRV_POOL_BUFS / 4)	/* buffers that a lone share leaves to others */

struct srv_pool;

/* The requests of one store. */
struct srv_pool_share {
	struct list link;		/* in srv_pool.hungry, while a request waits */
	struct list waiting;		/* struct srv_pool_waiter */
	unsigned held;
};

struct srv_buf {
	struct list link;
	struct srv_pool *pool;
	void *addr;
	int mem;			/* export-io's handle, or -1 */
	struct srv_pool_share *share;	/* the holder */
};

/* A request that waits for a buffer. */
struct srv_pool_waiter {
	struct list link;
	/* Takes @buf and with @buf the duty to put @buf back; may call srv_pool_put(). */
	void (*fn)(struct srv_pool_waiter *waiter, struct srv_buf *buf);
};

struct srv_pool {
	struct reactor *reactor;
	uint8_t *base;
	size_t len, stride;
	unsigned slab;			/* buffers that the ring learns and pins at once */
	unsigned nready;		/* buffers that are filled in */
	unsigned ntaken;
	bool serving;
	struct list free;
	struct srv_pool_share **shares;	/* by store.index; NULL: no such store */
	unsigned nslots;
	unsigned nidle;			/* shares without a buffer */
	struct list hungry;		/* struct srv_pool_share, in the order of their turns */
	struct srv_buf bufs[SRV_POOL_BUFS];
};

/* Reserve address space for buffers of @size bytes.  Any thread.  0 or -ENOMEM. */
int srv_pool_init(struct srv_pool *pool, struct reactor *r, size_t size);
/* Free the pool, when every buffer is back.  Any thread, after @pool's reactor has ended. */
void srv_pool_fini(struct srv_pool *pool);

/* Add a share for the store with the index @share.  0 or -ENOMEM. */
int srv_pool_share_add(struct srv_pool *pool, unsigned share);
/* Remove share number @share, which holds no buffer and has no waiter. */
void srv_pool_share_del(struct srv_pool *pool, unsigned share);

/* Take a buffer for a request of store @share.  Returns the buffer, or NULL when @waiter was
 * queued: then @waiter->fn gets a buffer later, never from inside this call. */
struct srv_buf *srv_pool_get(struct srv_pool *pool, unsigned share, struct srv_pool_waiter *waiter);
/* Give @buf back; waiters are served before this returns. */
void srv_pool_put(struct srv_buf *buf);

#endif
