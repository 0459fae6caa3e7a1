/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns protection domains and memory regions of RDMA devices.  A domain keeps its device's record
 * in the cm.  Any thread; errors as fabric.h says. */
#include <config.h>

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "cleanup.h"
#include "verbs-priv.h"

static void pd_free(struct verbs_pd *pd)
{
	struct rdma_cm_id *id;

	pthread_mutex_lock(&pd->cm->lock);
	pd->dev->npds--;
	id = verbs_dev_release(pd->dev);
	pthread_mutex_unlock(&pd->cm->lock);
	if (id)
		rdma_destroy_id(id);
	free(pd);
}

/* Set pd->dev.  0 or -errno. */
static int take_device(struct verbs_pd *pd, struct ibv_context *device)
{
	LOCK_SCOPE(&pd->cm->lock);
	pd->dev = verbs_dev_get(pd->cm, device);
	if (!pd->dev)
		return -ENOMEM;
	if (verbs_reap_is_late(pd->dev))
		return -EBUSY;
	pd->dev->npds++;
	return 0;
}

int verbs_pd_create(struct fab_conn *conn, struct fab_pd **out)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct verbs_pd *pd;
	int err;

	if (!c->id->verbs)
		return -EINVAL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->fab.ops = conn->ops;
	pd->cm = verbs_cm(conn->cm);
	err = take_device(pd, c->id->verbs);
	if (err) {
		free(pd);
		return err;
	}
	verbs_nonblock(c->id->verbs->async_fd);		/* for verbs_dev_events() */
	pd->pd = ibv_alloc_pd(c->id->verbs);
	if (!pd->pd) {
		err = verbs_neg_errno();
		pd_free(pd);
		return err;
	}
	*out = &pd->fab;
	return 0;
}

static void pd_destroy(struct verbs_reap *job)
{
	struct verbs_pd *pd = container_of(job, struct verbs_pd, reap);

	ibv_dealloc_pd(pd->pd);
	pd_free(pd);
}

void verbs_pd_destroy(struct fab_pd *fab)
{
	struct verbs_pd *pd = container_of(fab, struct verbs_pd, fab);

	pd->reap.destroy = pd_destroy;
	if (verbs_reap_follows(pd))
		verbs_reap(pd, &pd->reap);
	else
		pd_destroy(&pd->reap);
}

/* ---- memory regions ---- */

struct ibv_mr *verbs_mr_reg(struct fab_pd *fab, void *addr, size_t length, uint64_t iova,
			    int access)
{
	struct verbs_pd *pd = container_of(fab, struct verbs_pd, fab);
	struct verbs_mr *mr;

	if (!length) {		/* for fab_rereg_mr(), which verbs lacks */
		errno = ENOTSUP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->hw = ibv_reg_mr_iova(pd->pd, addr, length, iova, access);
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

static void mr_dereg(struct verbs_reap *job)
{
	struct verbs_mr *mr = container_of(job, struct verbs_mr, reap);

	ibv_dereg_mr(mr->hw);
	free(mr);
}

void verbs_mr_dereg(struct ibv_mr *ibv)
{
	struct verbs_mr *mr = container_of(ibv, struct verbs_mr, fab.ibv);
	struct verbs_pd *pd = container_of(mr->fab.pd, struct verbs_pd, fab);

	mr->reap = (struct verbs_reap){ .destroy = mr_dereg, .pd = pd };
	if (verbs_reap_follows(pd))
		verbs_reap(pd, &mr->reap);
	else
		mr_dereg(&mr->reap);
}
