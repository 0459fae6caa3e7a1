/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks keys up: for writes of a peer, for local elements, for an invalidate.  Owns nothing. */

#include "tcp-key.h"

static struct tcp_key *key_at(struct tcp_pd *pd, uint32_t index)
{
	uint32_t slot;
	unsigned level = tcp_key_level(index, &slot);
	struct tcp_key *keys;

	if (level >= TCP_KEY_LEVELS)
		return NULL;
	keys = atomic_load_explicit(&pd->levels[level], memory_order_acquire);
	return keys ? &keys[slot] : NULL;
}

static uint64_t key_want(uint32_t number)
{
	return TCP_KEY_ALIVE | (uint64_t)(number & 0xff) << TCP_KEY_TAG_SHIFT;
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
		if ((word & ~TCP_KEY_REFS_MASK) != want) {
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

bool tcp_key_drop(struct tcp_conn *c, const struct tcp_key *key)
{
	struct tcp_rx *rx = &c->rx;

	if (!rx->key || (key && rx->key != key))
		return false;
	tcp_key_put(rx->key);
	rx->key = NULL;
	rx->in_payload = false;
	return true;
}

/* Reads the fields without a reference: the fields belong together if the word is the same before
 * and after. */
bool tcp_key_local_ok(struct tcp_pd *pd, const struct ibv_sge *sge, int access, uint64_t *at)
{
	struct tcp_key *key = key_at(pd, sge->lkey >> 8);
	uint64_t want = key_want(sge->lkey), addr, len, owner;
	int have;

	if (!key ||
	    (atomic_load_explicit(&key->word, memory_order_acquire) & ~TCP_KEY_REFS_MASK) != want)
		return false;
	owner = atomic_load_explicit(&key->owner, memory_order_acquire);
	addr = atomic_load_explicit(&key->addr, memory_order_acquire);
	*at = sge->addr + atomic_load_explicit(&key->shift, memory_order_acquire);
	len = atomic_load_explicit(&key->len, memory_order_acquire);
	have = atomic_load_explicit(&key->access, memory_order_acquire);
	return (atomic_load_explicit(&key->word, memory_order_relaxed) &
		~TCP_KEY_REFS_MASK) == want &&
	       owner == TCP_KEY_REGION && (have & access) == access &&
	       range_ok(sge->addr - addr, sge->length, len);
}

/* RACE: of two threads that invalidate the same key at once, only one changes the word; the other
 * finds the key stale.  The fields are of @rkey if the word has not changed since the read. */
const char *tcp_key_invalidate(struct tcp_conn *c, uint32_t rkey, struct tcp_key **out)
{
	struct tcp_key *key = key_at(c->pd, rkey >> 8);
	uint64_t want = key_want(rkey), word, owner;
	struct tcp_mr *region;

	if (!key)
		return "unknown key";
	word = atomic_load_explicit(&key->word, memory_order_acquire);
	do {
		if ((word & ~TCP_KEY_REFS_MASK) != want)
			return "the key of no bound window";
		owner = atomic_load_explicit(&key->owner, memory_order_acquire);
		region = atomic_load_explicit(&key->region, memory_order_acquire);
		if (owner == TCP_KEY_REGION)
			return "the key of a region";
		if (owner == TCP_KEY_ANY_CONN)
			return "a window of type 1";
		if (owner != c->id)
			return "a window bound on another connection";
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &word, word & ~TCP_KEY_ALIVE,
							memory_order_acq_rel,
							memory_order_acquire));
	atomic_fetch_sub(&region->windows, 1);
	*out = key;
	return NULL;
}
