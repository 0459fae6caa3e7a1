/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns protection domains and memory regions; their keys are in tcp-key.c.  Any thread.  A region
 * is gone when nothing is placed under it: a connection in the middle of that is failed (doc/decisions.md
 * D12).  Running out of keys is -ENOMEM. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "tcp-priv.h"
#include "util.h"

static struct tcp_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct tcp_mr, base.ibv);
}

static struct tcp_pd *to_pd(struct fab_pd *pd)
{
	return container_of(pd, struct tcp_pd, base);
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

static void mr_set(struct tcp_mr *mr, void *addr, size_t length, uint64_t iova, int access)
{
	uint8_t tag = (uint8_t)(tcp_key_number(mr->key) + 1);

	if (tcp_key_kill(mr->key, tag))
		tcp_key_stop(to_pd(mr->base.pd), mr->key);
	if (length)
		tcp_key_publish(mr->key, tag, TCP_KEY_REGION, NULL, iova, (uintptr_t)addr - iova,
				length, access);
	mr->base.ibv.addr = addr;
	mr->base.ibv.length = length;
	mr->base.ibv.lkey = mr->base.ibv.rkey = tcp_key_number(mr->key);
}

int tcp_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, int access)
{
	return tcp_rereg_mr_iova(ibv, addr, length, (uintptr_t)addr, access);
}

int tcp_rereg_mr_iova(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access)
{
	struct tcp_mr *mr = to_mr(ibv);

	if (atomic_load(&mr->windows))
		return -EBUSY;
	mr_set(mr, addr, length, iova, access);
	return 0;
}

struct ibv_mr *tcp_reg_mr(struct fab_pd *fpd, void *addr, size_t length, int access)
{
	return tcp_reg_mr_iova(fpd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *tcp_reg_mr_iova(struct fab_pd *fpd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	struct tcp_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->base.pd = fpd;
	mr->key = tcp_key_alloc(to_pd(fpd));
	if (!mr->key) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	mr_set(mr, addr, length, iova, access);
	return &mr->base.ibv;
}

void tcp_mr_unbound(struct tcp_mr *mr)
{
	atomic_fetch_sub(&mr->windows, 1);
}

void tcp_dereg_mr(struct ibv_mr *ibv)
{
	struct tcp_mr *mr = to_mr(ibv);

	assert(!atomic_load(&mr->windows));
	mr_set(mr, NULL, 0, 0, 0);
	tcp_key_free(to_pd(mr->base.pd), mr->key);
	free(mr);
}
