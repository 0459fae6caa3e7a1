/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys (tcp-key.c), and their owners: protection domains (tcp-key.c), regions (tcp-key.c), windows
 * (tcp-key.c).
 *
 * A key lets a peer write to memory, or a work request name memory.  Keys are entries of their pd's
 * table.  Entries are never freed before the pd, so a lookup needs no lock; a lookup takes a
 * reference, and a revoke waits for the reference (tcp_pd_key_stop()).  Any thread.  If a key is
 * refused, the caller fails the connection. */
#ifndef TCP_KEY_H
#define TCP_KEY_H

#include <assert.h>

#include "tcp-conn.h"

/* The lkey good for any memory as a send source; no key of the table has this index. */
#define TCP_DMA_LKEY 0xffffff00u

struct tcp_mr {
	struct fab_mr base;
	struct tcp_key *key;
	_Atomic uint32_t windows;	/* number of windows bound in the region */
};

/* The owner of a key, the connections that may use the key: */
#define TCP_KEY_REGION 0ull		/* a region's: every connection of the pd */
#define TCP_KEY_ANY_CONN UINT64_MAX	/* a window of type 1: every connection of the pd */
					/* else a window of type 2: tcp_conn.id */

/* An entry of a pd's table.  A key on the wire is index << 8 | tag.
 *
 * word: alive, tag and the number of placements in progress, so a single compare-and-swap looks a
 * key up and takes a reference; written since alive, held.  The other fields are written only while
 * dead and without references. */
struct tcp_key {
	_Atomic uint64_t word;
	_Atomic uint64_t owner;
	_Atomic(struct tcp_mr *) region;	/* a window's */
	_Atomic uint64_t addr;			/* the peer's name of the first byte */
	_Atomic uint64_t shift;			/* memory - addr */
	_Atomic uint64_t len;
	_Atomic int access;
	uint32_t index;
	struct tcp_key *next_free;
};

#define TCP_KEY_ALIVE (1ull << 63)
#define TCP_KEY_WRITTEN (1ull << 62)	/* a placement has begun since the key became alive */
#define TCP_KEY_HELD (1ull << 61)	/* a placement waits for tcp_pd.hold before it begins */
#define TCP_KEY_TAG_SHIFT 32
#define TCP_KEY_TAG_MASK (0xffull << TCP_KEY_TAG_SHIFT)
#define TCP_KEY_REFS_MASK 0xffffffffull
/* The facts that a number on the wire has to agree with. */
#define TCP_KEY_NUMBER_MASK (TCP_KEY_ALIVE | TCP_KEY_TAG_MASK)

#define TCP_KEY_LEVELS 18	/* 64 << 0 + ... + 64 << 17 entries */
#define TCP_KEY_MAX ((64u << TCP_KEY_LEVELS) - 64u)

struct tcp_pd {
	struct fab_pd base;
	pthread_mutex_t lock;
	struct list conns;			/* tcp_conn.pd_link */
	_Atomic(struct tcp_key *) levels[TCP_KEY_LEVELS];
	uint32_t nkeys;				/* indices handed out so far */
	uint32_t live;				/* number of regions and windows */
	struct tcp_key *free;
	pthread_mutex_t hold;			/* locked while a key is held */
};

/* The key as on the wire; the last number, if @key is dead. */
static inline uint32_t tcp_key_number(const struct tcp_key *key)
{
	uint64_t word = atomic_load_explicit(&key->word, memory_order_relaxed);

	return key->index << 8 | (uint32_t)((word & TCP_KEY_TAG_MASK) >> TCP_KEY_TAG_SHIFT);
}

/* True if @key is alive now. */
static inline bool tcp_key_alive(const struct tcp_key *key)
{
	return atomic_load_explicit(&key->word, memory_order_acquire) & TCP_KEY_ALIVE;
}

/* Kill @key: no lookup finds @key any more, and its tag becomes @tag.  Returns the number of
 * placements in progress: if not 0, call tcp_pd_key_stop(). */
static inline uint32_t tcp_key_kill(struct tcp_key *key, uint8_t tag)
{
	uint64_t old = atomic_load_explicit(&key->word, memory_order_relaxed), new;

	do {
		new = (old & (TCP_KEY_REFS_MASK | TCP_KEY_HELD)) |
		      (uint64_t)tag << TCP_KEY_TAG_SHIFT;
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &old, new,
							memory_order_acq_rel,
							memory_order_relaxed));
	return (uint32_t)(old & TCP_KEY_REFS_MASK);
}

/* Make a dead key alive as @tag.
 * ORDER: release stores, so that a reader which sees a new field also sees the word that was
 * changed before (tcp_key_local_ok). */
static inline void tcp_key_publish(struct tcp_key *key, uint8_t tag, uint64_t owner,
				   struct tcp_mr *region, uint64_t addr, uint64_t shift,
				   uint64_t len, int access)
{
	assert(!(atomic_load_explicit(&key->word, memory_order_relaxed) &
		 (TCP_KEY_ALIVE | TCP_KEY_REFS_MASK)));
	atomic_store_explicit(&key->owner, owner, memory_order_release);
	atomic_store_explicit(&key->region, region, memory_order_release);
	atomic_store_explicit(&key->addr, addr, memory_order_release);
	atomic_store_explicit(&key->shift, shift, memory_order_release);
	atomic_store_explicit(&key->len, len, memory_order_release);
	atomic_store_explicit(&key->access, access, memory_order_release);
	atomic_store_explicit(&key->word, TCP_KEY_ALIVE | (uint64_t)tag << TCP_KEY_TAG_SHIFT,
			      memory_order_release);
}

/* Make a dead key alive again, with its old fields and tag. */
static inline void tcp_key_revive(struct tcp_key *key)
{
	assert(!(atomic_load_explicit(&key->word, memory_order_relaxed) & TCP_KEY_REFS_MASK));
	atomic_fetch_or_explicit(&key->word, TCP_KEY_ALIVE, memory_order_release);
}

/* Give a reference back.
 * ORDER: the placed bytes happen before the revoke that sees the count fall. */
static inline void tcp_key_put(struct tcp_key *key)
{
	atomic_fetch_sub_explicit(&key->word, 1, memory_order_release);
}

/* Look up @rkey for a peer's write to [addr, addr + len), and hold the key against revocation until
 * tcp_key_put().  NULL with the reason in @why.  Under rx->lock, so that a revoke finds the
 * holder. */
struct tcp_key *tcp_key_get(struct tcp_conn *c, uint32_t rkey, uint64_t addr, uint32_t len,
			    const char **why);
/* Stop placing under @key (NULL: any key) on @c and drop the message.  Returns true if a placement
 * was dropped.  rx->lock held. */
bool tcp_key_drop(struct tcp_conn *c, const struct tcp_key *key);
/* Kill the key of a window of type 2 that is bound on @c.  Returns NULL and the key in @out, whose
 * placements, all on @c, may still run; or a description of @rkey, if @rkey is no such key. */
const char *tcp_key_invalidate(struct tcp_conn *c, uint32_t rkey, struct tcp_key **out);
/* True if @sge may be used locally with @access (0 or IBV_ACCESS_LOCAL_WRITE); @at gets its
 * memory. */
bool tcp_key_local_ok(struct tcp_pd *pd, const struct ibv_sge *sge, int access, uint64_t *at);

/* Level k of the table holds the 64 << k indices from (64 << k) - 64 on. */
static inline unsigned tcp_key_level(uint32_t index, uint32_t *slot)
{
	uint32_t x = index + 64u;
	unsigned level = 31 - (unsigned)__builtin_clz(x) - 6;

	*slot = x - (64u << level);
	return level;
}

/* ---- domains: their table of keys, and the connections that may hold a key ---- */

/* Make a pd without keys. */
int tcp_pd_create(struct fab_conn *conn, struct fab_pd **out);
/* Free the pd and its table of keys. */
void tcp_pd_destroy(struct fab_pd *fpd);

/* The tcp_pd around @pd. */
static inline struct tcp_pd *tcp_pd(struct fab_pd *pd)
{
	return container_of(pd, struct tcp_pd, base);
}

/* Take an unused entry, dead.  NULL: no memory or no entry left.  Takes pd->lock. */
struct tcp_key *tcp_pd_key_alloc(struct tcp_pd *pd);
/* Give back @key, which is dead.  Takes pd->lock. */
void tcp_pd_key_free(struct tcp_pd *pd, struct tcp_key *key);
/* Wait for the placements under a dead key to stop, and fail the connections in the middle of a
 * placement.  No lock held. */
void tcp_pd_key_stop(struct tcp_pd *pd, struct tcp_key *key);

/* ---- regions: contracts in fabric.h; promise k holds when these return (doc/decisions.md D12)
 * ---- */

/* Make a region with a key of its own. */
struct ibv_mr *tcp_mr_reg(struct fab_pd *fpd, void *addr, size_t length, uint64_t iova, int access);
/* Give the region another range and key; the entry of the table stays. */
int tcp_mr_rereg(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access);
/* Kill the key and free the region. */
void tcp_mr_dereg(struct ibv_mr *ibv);
/* Kill the key (@closed), or make the same key alive again. */
int tcp_mr_suspend(struct ibv_mr *ibv, bool closed);
/* Have placements wait, and let them go on. */
int tcp_mr_hold(struct ibv_mr *ibv);
void tcp_mr_release(struct ibv_mr *ibv);

/* ---- windows; a single thread at a time for a window ---- */

/* Make an unbound window with a key of its own. */
struct ibv_mw *tcp_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type);
/* Unbind and free the window; always 0. */
int tcp_mw_dealloc(struct ibv_mw *ibv);
/* Carry out a BIND_MW that will be queued on @c (doc/decisions.md D1).  A connection in the middle
 * of a write under the old key fails.  Returns NULL, or the fault of the request.  No lock held. */
const char *tcp_mw_bind(struct tcp_conn *c, const struct ibv_send_wr *wr);
/* Carry out a LOCAL_INV of @rkey, as tcp_mw_bind() does a bind. */
const char *tcp_mw_invalidate(struct tcp_conn *c, uint32_t rkey);

#endif
