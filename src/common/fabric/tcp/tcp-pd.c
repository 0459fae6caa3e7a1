/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns protection domains and their tables of keys, which grow and never shrink.  Any thread.
 * Running out of keys is -ENOMEM. */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "tcp-key.h"

int tcp_pd_create(struct fab_conn *conn, struct fab_pd **out)
{
	struct tcp_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->base.ops = conn->ops;
	pd->base.dma_lkey = TCP_DMA_LKEY;
	pthread_mutex_init(&pd->lock, NULL);
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
