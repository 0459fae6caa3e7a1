/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions and the keys that name them.
 *
 * Owns a pd's key table.  Entries are never freed before the pd, so a lookup needs no lock; it
 * takes a reference that a revoke waits for.  Any thread.  A region is gone when nothing is placed
 * under it: a connection in the middle of that is failed (design.md D12).  Running out of keys is
 * -ENOMEM. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "tcp-priv.h"
#include "util.h"

#define KEY_ALIVE (1ull << 63)
#define KEY_TAG_SHIFT 32
#define KEY_TAG_MASK (0xffull << KEY_TAG_SHIFT)
#define KEY_REFS_MASK 0xffffffffull

#define LEVEL0_BITS 6

struct tcp_mr {
	struct fab_mr base;
	struct tcp_key *key;
};

static struct tcp_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct tcp_mr, base.ibv);
}

static struct tcp_pd *to_pd(struct fab_pd *pd)
{
	return container_of(pd, struct tcp_pd, base);
}

/* Level k of the table holds the 64 << k indices from (64 << k) - 64 on. */
static unsigned level_of(uint32_t index, uint32_t *slot)
{
	uint32_t x = index + (1u << LEVEL0_BITS);
	unsigned level = 31 - (unsigned)__builtin_clz(x) - LEVEL0_BITS;

	*slot = x - (1u << (level + LEVEL0_BITS));
	return level;
}

static struct tcp_key *key_at(struct tcp_pd *pd, uint32_t index)
{
	uint32_t slot;
	unsigned level = level_of(index, &slot);
	struct tcp_key *keys;

	if (level >= TCP_KEY_LEVELS)
		return NULL;
	keys = atomic_load_explicit(&pd->levels[level], memory_order_acquire);
	return keys ? &keys[slot] : NULL;
}

/* pd->lock held. */
static struct tcp_key *key_alloc(struct tcp_pd *pd)
{
	struct tcp_key *key = pd->free, *keys;
	uint32_t slot;
	unsigned level;

	if (key) {
		pd->free = key->next_free;
		return key;
	}
	level = level_of(pd->nkeys, &slot);
	if (level >= TCP_KEY_LEVELS)
		return NULL;
	keys = atomic_load_explicit(&pd->levels[level], memory_order_relaxed);
	if (!keys) {
		keys = calloc(1ul << (level + LEVEL0_BITS), sizeof(*keys));
		if (!keys)
			return NULL;
		atomic_store_explicit(&pd->levels[level], keys, memory_order_release);
	}
	key = &keys[slot];
	key->index = pd->nkeys++;
	return key;
}

static uint32_t key_number(const struct tcp_key *key, uint64_t word)
{
	return key->index << 8 | (uint32_t)((word & KEY_TAG_MASK) >> KEY_TAG_SHIFT);
}

/* Kill the key and give its successor another tag.  Returns the placements still in progress. */
static uint32_t key_kill(struct tcp_key *key)
{
	uint64_t old = atomic_load_explicit(&key->word, memory_order_relaxed), new;

	do {
		new = (old & KEY_REFS_MASK) |
		      ((old + (1ull << KEY_TAG_SHIFT)) & KEY_TAG_MASK);
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &old, new,
							memory_order_acq_rel,
							memory_order_relaxed));
	return (uint32_t)(old & KEY_REFS_MASK);
}

/* ORDER: release stores, so that a reader which sees a new field also sees the word that was
 * changed before it (tcp_lkey_ok). */
static void key_publish(struct tcp_key *key, void *addr, size_t len, int access)
{
	uint64_t word = atomic_load_explicit(&key->word, memory_order_relaxed);

	assert(!(word & (KEY_ALIVE | KEY_REFS_MASK)));
	atomic_store_explicit(&key->addr, (uintptr_t)addr, memory_order_release);
	atomic_store_explicit(&key->len, len, memory_order_release);
	atomic_store_explicit(&key->access, access, memory_order_release);
	atomic_store_explicit(&key->word, word | KEY_ALIVE, memory_order_release);
}

struct tcp_key *tcp_key_get(struct tcp_pd *pd, uint32_t rkey, uint64_t addr, uint32_t len,
			    const char **why)
{
	struct tcp_key *key = key_at(pd, rkey >> 8);
	uint64_t want = KEY_ALIVE | (uint64_t)(rkey & 0xff) << KEY_TAG_SHIFT, word;

	if (!key) {
		*why = "unknown key";
		return NULL;
	}
	word = atomic_load_explicit(&key->word, memory_order_relaxed);
	do {
		if ((word & ~KEY_REFS_MASK) != want) {
			*why = "stale key";
			return NULL;
		}
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &word, word + 1,
							memory_order_acquire,
							memory_order_relaxed));
	if (!(atomic_load_explicit(&key->access, memory_order_relaxed) & IBV_ACCESS_REMOTE_WRITE))
		*why = "no right to write";
	else if (!range_ok(addr - atomic_load_explicit(&key->addr, memory_order_relaxed), len,
			   atomic_load_explicit(&key->len, memory_order_relaxed)))
		*why = "out of range";
	else
		return key;
	tcp_key_put(key);
	return NULL;
}

/* ORDER: what was placed happens before the revoke that sees the count fall. */
void tcp_key_put(struct tcp_key *key)
{
	atomic_fetch_sub_explicit(&key->word, 1, memory_order_release);
}

/* Reads the fields without a reference: they are whole if the word is the same before and after. */
bool tcp_lkey_ok(struct tcp_pd *pd, const struct ibv_sge *sge, int access)
{
	struct tcp_key *key = key_at(pd, sge->lkey >> 8);
	uint64_t want = KEY_ALIVE | (uint64_t)(sge->lkey & 0xff) << KEY_TAG_SHIFT;
	uint64_t addr, len;
	int have;

	if (!key || (atomic_load_explicit(&key->word, memory_order_acquire) & ~KEY_REFS_MASK) != want)
		return false;
	addr = atomic_load_explicit(&key->addr, memory_order_acquire);
	len = atomic_load_explicit(&key->len, memory_order_acquire);
	have = atomic_load_explicit(&key->access, memory_order_acquire);
	return (atomic_load_explicit(&key->word, memory_order_relaxed) & ~KEY_REFS_MASK) == want &&
	       (have & access) == access && range_ok(sge->addr - addr, sge->length, len);
}

int tcp_pd_create(struct fab_conn *conn, struct fab_pd **out)
{
	struct tcp_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->base.ops = &fab_tcp;
	pthread_mutex_init(&pd->lock, NULL);
	list_init(&pd->conns);
	*out = &pd->base;
	return 0;
}

void tcp_pd_destroy(struct fab_pd *fpd)
{
	struct tcp_pd *pd = to_pd(fpd);

	assert(list_empty(&pd->conns));
	assert(pd->live == 0);
	for (unsigned i = 0; i < TCP_KEY_LEVELS; i++)
		free(atomic_load_explicit(&pd->levels[i], memory_order_relaxed));
	pthread_mutex_destroy(&pd->lock);
	free(pd);
}

bool tcp_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey)
{
	*lkey = TCP_DMA_LKEY;
	return true;
}

/* RACE: the key is dead, so no new placement begins under it.  One in progress is held by a
 * connection that either is inside its poll, which our taking its rx lock waits for, or has stopped
 * in the middle of a frame, and then it is dropped here. */
static void stop_placing(struct tcp_pd *pd, struct tcp_key *key)
{
	struct tcp_conn *c;

	pthread_mutex_lock(&pd->lock);
	list_for_each(c, &pd->conns, pd_link) {
		pthread_mutex_lock(&c->rx.lock);
		if (tcp_rx_drop(c, key))
			tcp_conn_fail(c, IBV_WC_REM_ACCESS_ERR,
				      "remote access error: key 0x%x was revoked during a write",
				      c->rx.frame.rkey);
		pthread_mutex_unlock(&c->rx.lock);
	}
	pthread_mutex_unlock(&pd->lock);
	assert(!(atomic_load_explicit(&key->word, memory_order_acquire) & KEY_REFS_MASK));
}

int tcp_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, int access)
{
	struct tcp_mr *mr = to_mr(ibv);

	if (key_kill(mr->key))
		stop_placing(to_pd(mr->base.pd), mr->key);
	if (length)
		key_publish(mr->key, addr, length, access);
	ibv->addr = addr;
	ibv->length = length;
	ibv->lkey = ibv->rkey =
		key_number(mr->key, atomic_load_explicit(&mr->key->word, memory_order_relaxed));
	return 0;
}

struct ibv_mr *tcp_reg_mr(struct fab_pd *fpd, void *addr, size_t length, int access)
{
	struct tcp_pd *pd = to_pd(fpd);
	struct tcp_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->base.pd = fpd;
	pthread_mutex_lock(&pd->lock);
	mr->key = key_alloc(pd);
	if (mr->key)
		pd->live++;
	pthread_mutex_unlock(&pd->lock);
	if (!mr->key) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	tcp_rereg_mr(&mr->base.ibv, addr, length, access);
	return &mr->base.ibv;
}

void tcp_dereg_mr(struct ibv_mr *ibv)
{
	struct tcp_mr *mr = to_mr(ibv);
	struct tcp_pd *pd = to_pd(mr->base.pd);

	tcp_rereg_mr(ibv, NULL, 0, 0);
	pthread_mutex_lock(&pd->lock);
	mr->key->next_free = pd->free;
	pd->free = mr->key;
	pd->live--;
	pthread_mutex_unlock(&pd->lock);
	free(mr);
}
