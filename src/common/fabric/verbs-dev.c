/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns protection domains and memory regions of RDMA devices.  The device itself belongs to
 * librdmacm, which opens each once and keeps it.  Any thread; errors as fabric.h says. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>

#include "verbs-priv.h"

/* Sends of a queue that are not its user's: see verbs-conn.c, signal_every and the marker. */
#define SQ_RESERVE 34

int verbs_query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	const struct verbs_conn *c = verbs_conn(conn);
	struct ibv_device_attr dev;
	uint32_t wr;

	if (!c->id->verbs)
		return -EINVAL;
	if (ibv_query_device(c->id->verbs, &dev))
		return -EIO;
	/* Both queues report to one CQ, which must have room for all that can be posted. */
	wr = (uint32_t)MIN(dev.max_qp_wr, dev.max_cqe / 2);
	if (wr <= SQ_RESERVE)
		return -EOPNOTSUPP;
	attr->max_qp_wr = wr - SQ_RESERVE;
	attr->max_sge = (uint32_t)dev.max_sge;
	attr->local_dma_lkey = false;
	attr->rereg_mr = false;
	return 0;
}

int verbs_pd_create(struct fab_conn *conn, struct fab_pd **out)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct verbs_pd *pd;

	if (!c->id->verbs)
		return -EINVAL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->fab.ops = conn->ops;
	pd->pd = ibv_alloc_pd(c->id->verbs);
	if (!pd->pd) {
		int err = errno ? -errno : -EIO;

		free(pd);
		return err;
	}
	*out = &pd->fab;
	return 0;
}

void verbs_pd_destroy(struct fab_pd *fab)
{
	struct verbs_pd *pd = container_of(fab, struct verbs_pd, fab);

	ibv_dealloc_pd(pd->pd);
	free(pd);
}

/* User space has none. */
bool verbs_pd_local_dma_lkey(const struct fab_pd *pd, uint32_t *lkey)
{
	return false;
}

struct ibv_mr *verbs_reg_mr(struct fab_pd *fab, void *addr, size_t length, int access)
{
	struct verbs_pd *pd = container_of(fab, struct verbs_pd, fab);
	struct verbs_mr *mr;

	if (!length) {		/* to be filled later: what it would be filled with is not there */
		errno = ENOTSUP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	mr->hw = ibv_reg_mr(pd->pd, addr, length, access);
	if (!mr->hw) {
		int err = errno ? errno : EIO;

		free(mr);
		errno = err;
		return NULL;
	}
	mr->fab.pd = fab;
	mr->fab.ibv = *mr->hw;
	return &mr->fab.ibv;
}

/* ibv_rereg_mr() cannot change the translation on rxe, and is no fast path anywhere. */
int verbs_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, int access)
{
	return -ENOTSUP;
}

void verbs_dereg_mr(struct ibv_mr *ibv)
{
	struct verbs_mr *mr = container_of(ibv, struct verbs_mr, fab.ibv);

	ibv_dereg_mr(mr->hw);
	free(mr);
}
