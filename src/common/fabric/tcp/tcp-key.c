/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns protection domains and their tables of keys, which grow and never shrink, and the memory
 * regions and windows that keys stand for.  Any thread.  Running out of keys is -ENOMEM.
 *
 * The happy path: tcp_pd_* gives a region or a window a key; a peer's frame or a local element
 * names the key, and a look-up checks rights and range; an invalidate or the end of the region
 * makes the key dead, and waits for a placement in progress.  Possible failures: no key is left; a
 * peer names a dead key, or one without the right, and loses its connection. */

/* ---- look-ups: for writes of a peer, for local elements, for an invalidate ---- */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
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

/* tcp_key_get() behind the release of a key that is held.  Seldom, so out of its way. */
static __attribute__((noinline)) struct tcp_key *get_released(struct tcp_conn *c, uint32_t rkey,
							      uint64_t addr, uint32_t len,
							      const char **why)
{
	pthread_mutex_lock(&c->pd->hold);
	pthread_mutex_unlock(&c->pd->hold);
	return tcp_key_get(c, rkey, addr, len, why);
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
		if (word & TCP_KEY_HELD)
			return get_released(c, rkey, addr, len, why);
		if ((word & TCP_KEY_NUMBER_MASK) != want) {
			*why = "stale key";
			return NULL;
		}
	} while (!atomic_compare_exchange_weak_explicit(&key->word, &word,
							(word | TCP_KEY_WRITTEN) + 1,
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
	    (atomic_load_explicit(&key->word, memory_order_acquire) & TCP_KEY_NUMBER_MASK) != want)
		return false;
	owner = atomic_load_explicit(&key->owner, memory_order_acquire);
	addr = atomic_load_explicit(&key->addr, memory_order_acquire);
	*at = sge->addr + atomic_load_explicit(&key->shift, memory_order_acquire);
	len = atomic_load_explicit(&key->len, memory_order_acquire);
	have = atomic_load_explicit(&key->access, memory_order_acquire);
	return (atomic_load_explicit(&key->word, memory_order_relaxed) &
		TCP_KEY_NUMBER_MASK) == want &&
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
		if ((word & TCP_KEY_NUMBER_MASK) != want)
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

/* ---- protection domains ---- */

int tcp_pd_create(struct fab_conn *conn, struct fab_pd **out)
{
	struct tcp_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->base.ops = conn->ops;
	pd->base.dma_lkey = TCP_DMA_LKEY;
	pthread_mutex_init(&pd->lock, NULL);
	pthread_mutex_init(&pd->hold, NULL);
	list_init(&pd->conns);
	*out = &pd->base;
	return 0;
}

void tcp_pd_destroy(struct fab_pd *fpd)
{
	struct tcp_pd *pd = tcp_pd(fpd);

	assert(list_empty(&pd->conns));
	assert(pd->live == 0);
	for (unsigned i = 0; i < TCP_KEY_LEVELS; i++)
		free(atomic_load_explicit(&pd->levels[i], memory_order_relaxed));
	pthread_mutex_destroy(&pd->lock);
	pthread_mutex_destroy(&pd->hold);
	free(pd);
}

/* An unused entry: a freed entry, or the next index.  NULL: no memory or all taken.  pd->lock
 * held. */
static struct tcp_key *key_new(struct tcp_pd *pd)
{
	struct tcp_key *key = pd->free, *keys;
	uint32_t slot;
	unsigned level;

	if (key) {
		pd->free = key->next_free;
		return key;
	}
	level = tcp_key_level(pd->nkeys, &slot);
	if (level >= TCP_KEY_LEVELS)
		return NULL;
	keys = atomic_load_explicit(&pd->levels[level], memory_order_relaxed);
	if (!keys) {
		keys = calloc(64ul << level, sizeof(*keys));
		if (!keys)
			return NULL;
		atomic_store_explicit(&pd->levels[level], keys, memory_order_release);
	}
	key = &keys[slot];
	key->index = pd->nkeys++;
	return key;
}

struct tcp_key *tcp_pd_key_alloc(struct tcp_pd *pd)
{
	struct tcp_key *key;

	LOCK_SCOPE(&pd->lock);
	key = key_new(pd);
	if (key)
		pd->live++;
	return key;
}

void tcp_pd_key_free(struct tcp_pd *pd, struct tcp_key *key)
{
	LOCK_SCOPE(&pd->lock);
	key->next_free = pd->free;
	pd->free = key;
	pd->live--;
}

/* RACE: the key is dead, so no new placement begins under it.  A placement in progress belongs to a
 * connection.  Either the connection is inside its poll: taking its rx lock waits for the end.  Or
 * the connection has stopped in the middle of a frame: the placement is dropped here. */
void tcp_pd_key_stop(struct tcp_pd *pd, struct tcp_key *key)
{
	struct tcp_conn *c;

	LOCK_SCOPE(&pd->lock);
	list_for_each(c, &pd->conns, pd_link) {
		LOCK_SCOPE(&c->rx.lock);
		if (tcp_key_drop(c, key))
			tcp_conn_fail(c, IBV_WC_REM_ACCESS_ERR,
				      "remote access error: key 0x%x was revoked during a write",
				      c->rx.frame.rkey);
	}
	assert(!(atomic_load_explicit(&key->word, memory_order_acquire) & TCP_KEY_REFS_MASK));
}

/* ---- memory regions ---- */

static struct tcp_mr *to_tcp_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct tcp_mr, base.ibv);
}

static void mr_set(struct tcp_mr *mr, void *addr, size_t length, uint64_t iova, int access)
{
	uint8_t tag = (uint8_t)(tcp_key_number(mr->key) + 1);

	if (tcp_key_kill(mr->key, tag))
		tcp_pd_key_stop(tcp_pd(mr->base.pd), mr->key);
	if (length)
		tcp_key_publish(mr->key, tag, TCP_KEY_REGION, NULL, iova, (uintptr_t)addr - iova,
				length, access);
	mr->base.ibv.addr = addr;
	mr->base.ibv.length = length;
	mr->base.ibv.lkey = mr->base.ibv.rkey = tcp_key_number(mr->key);
}

int tcp_mr_rereg(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access)
{
	struct tcp_mr *mr = to_tcp_mr(ibv);

	if (atomic_load(&mr->windows))
		return -EBUSY;
	mr_set(mr, addr, length, iova, access);
	return 0;
}

int tcp_mr_suspend(struct ibv_mr *ibv, bool closed)
{
	struct tcp_mr *mr = to_tcp_mr(ibv);

	if (atomic_load(&mr->windows))
		return -EBUSY;
	if (!closed && !tcp_key_alive(mr->key))
		tcp_key_revive(mr->key);
	else if (closed && tcp_key_kill(mr->key, (uint8_t)tcp_key_number(mr->key)))
		tcp_pd_key_stop(tcp_pd(mr->base.pd), mr->key);
	return 0;
}

/* Changes the word only if no placement has begun since the key became alive, so no placement is in
 * progress, and none is complete whose completion was not polled or not handled. */
int tcp_mr_hold(struct ibv_mr *ibv)
{
	struct tcp_mr *mr = to_tcp_mr(ibv);
	struct tcp_pd *pd = tcp_pd(mr->base.pd);
	uint64_t word;

	pthread_mutex_lock(&pd->hold);
	word = atomic_load_explicit(&mr->key->word, memory_order_relaxed);
	while ((word & (TCP_KEY_ALIVE | TCP_KEY_WRITTEN)) == TCP_KEY_ALIVE) {
		if (atomic_compare_exchange_weak_explicit(&mr->key->word, &word,
							  word | TCP_KEY_HELD,
							  memory_order_acquire,
							  memory_order_relaxed))
			return 0;
	}
	pthread_mutex_unlock(&pd->hold);
	return -EBUSY;
}

/* ORDER: what the holder did to the memory happens before the next placement. */
void tcp_mr_release(struct ibv_mr *ibv)
{
	struct tcp_mr *mr = to_tcp_mr(ibv);

	atomic_fetch_and_explicit(&mr->key->word, ~TCP_KEY_HELD, memory_order_release);
	pthread_mutex_unlock(&tcp_pd(mr->base.pd)->hold);
}

struct ibv_mr *tcp_mr_reg(struct fab_pd *fpd, void *addr, size_t length, uint64_t iova, int access)
{
	struct tcp_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->base.pd = fpd;
	mr->key = tcp_pd_key_alloc(tcp_pd(fpd));
	if (!mr->key) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	mr_set(mr, addr, length, iova, access);
	return &mr->base.ibv;
}

void tcp_mr_dereg(struct ibv_mr *ibv)
{
	struct tcp_mr *mr = to_tcp_mr(ibv);

	assert(!atomic_load(&mr->windows));
	mr_set(mr, NULL, 0, 0, 0);
	tcp_pd_key_free(tcp_pd(mr->base.pd), mr->key);
	free(mr);
}

/* ---- memory windows ---- */

struct tcp_mw {
	struct fab_mw base;
	struct tcp_key *key;
};

static struct tcp_mw *to_tcp_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct tcp_mw, base.ibv);
}

struct ibv_mw *tcp_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct tcp_mw *mw = calloc(1, sizeof(*mw));

	if (!mw)
		return NULL;
	mw->base.pd = pd;
	mw->key = tcp_pd_key_alloc(tcp_pd(pd));
	if (!mw->key) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	mw->base.ibv.type = type;
	mw->base.ibv.rkey = tcp_key_number(mw->key);
	return &mw->base.ibv;
}

/* Unbind @mw, if bound, and make its key dead as @tag. */
static void window_unbind(struct tcp_mw *mw, uint8_t tag)
{
	bool bound = tcp_key_alive(mw->key);

	if (tcp_key_kill(mw->key, tag))
		tcp_pd_key_stop(tcp_pd(mw->base.pd), mw->key);
	if (bound)
		atomic_fetch_sub(&atomic_load(&mw->key->region)->windows, 1);
}

int tcp_mw_dealloc(struct ibv_mw *ibv)
{
	struct tcp_mw *mw = to_tcp_mw(ibv);

	window_unbind(mw, (uint8_t)(tcp_key_number(mw->key) + 1));
	tcp_pd_key_free(tcp_pd(mw->base.pd), mw->key);
	free(mw);
	return 0;
}

const char *tcp_mw_bind(struct tcp_conn *c, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct tcp_mw *mw = to_tcp_mw(wr->bind_mw.mw);
	struct tcp_mr *mr = container_of(info->mr, struct tcp_mr, base.ibv);
	uint8_t tag = (uint8_t)wr->bind_mw.rkey;
	uint64_t name = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	const char *why = fab_bind_check(wr, &c->pd->base, tcp_key_number(mw->key));

	if (why)
		return why;
	if (mw->base.ibv.type == IBV_MW_TYPE_2 && tcp_key_alive(mw->key))
		return "a window of type 2 that is bound";
	window_unbind(mw, tag);
	if (info->length) {
		atomic_fetch_add(&mr->windows, 1);
		tcp_key_publish(mw->key, tag,
				mw->base.ibv.type == IBV_MW_TYPE_2 ? c->id : TCP_KEY_ANY_CONN, mr,
				name,
				(uintptr_t)mr->base.ibv.addr - mr->base.iova + info->addr - name,
				info->length, (int)info->mw_access_flags);
	}
	return NULL;
}

/* RACE: as in tcp_pd_key_stop(), but only this connection can be in the middle of a write. */
const char *tcp_mw_invalidate(struct tcp_conn *c, uint32_t rkey)
{
	struct tcp_key *key;
	const char *why = tcp_key_invalidate(c, rkey, &key);

	if (why)
		return why;
	LOCK_SCOPE(&c->rx.lock);
	if (tcp_key_drop(c, key))
		tcp_conn_fail(c, IBV_WC_REM_ACCESS_ERR,
			      "remote access error: key 0x%x was invalidated during a write", rkey);
	return NULL;
}
