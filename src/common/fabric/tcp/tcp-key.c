/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a pd's table of keys, those of regions (tcp-mem.c) and of windows (tcp-mw.c).  Entries are
 * never freed before the pd, so a lookup needs no lock; it takes a reference that a revoke waits
 * for. Any thread.  A key that is refused costs its connection, which is the caller's to do. */
#include <assert.h>
#include <stdlib.h>

#include "tcp-priv.h"
#include "util.h"

#define KEY_ALIVE (1ull << 63)
#define KEY_TAG_SHIFT 32
#define KEY_TAG_MASK (0xffull << KEY_TAG_SHIFT)
#define KEY_REFS_MASK 0xffffffffull

#define LEVEL0_BITS 6

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
static struct tcp_key *key_new(struct tcp_pd *pd)
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

struct tcp_key *tcp_key_alloc(struct tcp_pd *pd)
{
	struct tcp_key *key;

	pthread_mutex_lock(&pd->lock);
	key = key_new(pd);
	if (key)
		pd->live++;
	pthread_mutex_unlock(&pd->lock);
	return key;
}

void tcp_key_free(struct tcp_pd *pd, struct tcp_key *key)
{
	pthread_mutex_lock(&pd->lock);
	key->next_free = pd->free;
	pd->free = key;
	pd->live--;
	pthread_mutex_unlock(&pd->lock);
}

uint32_t tcp_key_number(const struct tcp_key *key)
{
	uint64_t word = atomic_load_explicit(&key->word, memory_order_relaxed);

	return key->index << 8 | (uint32_t)((word & KEY_TAG_MASK) >> KEY_TAG_SHIFT);
}

bool tcp_key_alive(const struct tcp_key *key)
{
	return atomic_load_explicit(&key->word, memory_order_acquire) & KEY_ALIVE;
}

uint32_t tcp_key_kill(struct tcp_key *key, uint8_t tag)
{
	uint64_t old = atomic_load_explicit(&key->word, memory_order_relaxed), new;

	do {
		new = (old & KEY_REFS_MASK) | (uint64_t)tag << KEY_TAG_SHIFT;
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &old, new,
							memory_order_acq_rel,
							memory_order_relaxed));
	return (uint32_t)(old & KEY_REFS_MASK);
}

/* ORDER: release stores, so that a reader which sees a new field also sees the word that was
 * changed before it (tcp_lkey_ok). */
void tcp_key_publish(struct tcp_key *key, uint8_t tag, uint64_t owner, struct tcp_mr *region,
		     uint64_t addr, uint64_t shift, uint64_t len, int access)
{
	assert(!(atomic_load_explicit(&key->word, memory_order_relaxed) &
		 (KEY_ALIVE | KEY_REFS_MASK)));
	atomic_store_explicit(&key->owner, owner, memory_order_release);
	atomic_store_explicit(&key->region, region, memory_order_release);
	atomic_store_explicit(&key->addr, addr, memory_order_release);
	atomic_store_explicit(&key->shift, shift, memory_order_release);
	atomic_store_explicit(&key->len, len, memory_order_release);
	atomic_store_explicit(&key->access, access, memory_order_release);
	atomic_store_explicit(&key->word, KEY_ALIVE | (uint64_t)tag << KEY_TAG_SHIFT,
			      memory_order_release);
}

static uint64_t key_want(uint32_t number)
{
	return KEY_ALIVE | (uint64_t)(number & 0xff) << KEY_TAG_SHIFT;
}

struct tcp_key *tcp_key_get(struct tcp_conn *c, uint32_t rkey, uint64_t addr, uint32_t len,
			    const char **why)
{
	struct tcp_key *key = key_at(c->pd, rkey >> 8);
	uint64_t want = key_want(rkey), word, owner;

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
	owner = atomic_load_explicit(&key->owner, memory_order_relaxed);
	if (owner != TCP_KEY_REGION && owner != TCP_KEY_ANY_CONN && owner != c->id)
		*why = "window bound on another connection";
	else if (!(atomic_load_explicit(&key->access, memory_order_relaxed) &
		   IBV_ACCESS_REMOTE_WRITE))
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
bool tcp_lkey_ok(struct tcp_pd *pd, const struct ibv_sge *sge, int access, uint64_t *at)
{
	struct tcp_key *key = key_at(pd, sge->lkey >> 8);
	uint64_t want = key_want(sge->lkey), addr, len, owner;
	int have;

	if (!key ||
	    (atomic_load_explicit(&key->word, memory_order_acquire) & ~KEY_REFS_MASK) != want)
		return false;
	owner = atomic_load_explicit(&key->owner, memory_order_acquire);
	addr = atomic_load_explicit(&key->addr, memory_order_acquire);
	*at = sge->addr + atomic_load_explicit(&key->shift, memory_order_acquire);
	len = atomic_load_explicit(&key->len, memory_order_acquire);
	have = atomic_load_explicit(&key->access, memory_order_acquire);
	return (atomic_load_explicit(&key->word, memory_order_relaxed) & ~KEY_REFS_MASK) == want &&
	       owner == TCP_KEY_REGION && (have & access) == access &&
	       range_ok(sge->addr - addr, sge->length, len);
}

/* RACE: two that invalidate the same key at once: one of them changes the word, the other finds it
 * stale.  The fields are those of @rkey if the word has not changed since they were read. */
const char *tcp_key_invalidate(struct tcp_conn *c, uint32_t rkey, struct tcp_key **out)
{
	struct tcp_key *key = key_at(c->pd, rkey >> 8);
	uint64_t want = key_want(rkey), word, owner;
	struct tcp_mr *region;

	if (!key)
		return "unknown key";
	word = atomic_load_explicit(&key->word, memory_order_acquire);
	do {
		if ((word & ~KEY_REFS_MASK) != want)
			return "the key of no bound window";
		owner = atomic_load_explicit(&key->owner, memory_order_acquire);
		region = atomic_load_explicit(&key->region, memory_order_acquire);
		if (owner == TCP_KEY_REGION)
			return "the key of a region";
		if (owner == TCP_KEY_ANY_CONN)
			return "a window of type 1";
		if (owner != c->id)
			return "a window bound on another connection";
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &word, word & ~KEY_ALIVE,
							memory_order_acq_rel,
							memory_order_acquire));
	tcp_mr_unbound(region);
	*out = key;
	return NULL;
}

/* RACE: the key is dead, so no new placement begins under it.  One in progress is held by a
 * connection that either is inside its poll, which our taking its rx lock waits for, or has stopped
 * in the middle of a frame, and then it is dropped here. */
void tcp_key_stop(struct tcp_pd *pd, struct tcp_key *key)
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
