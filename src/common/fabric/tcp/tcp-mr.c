/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory regions; their keys are in the table of tcp-pd.c. */
#include <errno.h>
#include <stdlib.h>

#include "tcp-key.h"

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
