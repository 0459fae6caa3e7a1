/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns memory regions of RDMA devices.  Any thread; errors as fabric.h says. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "verbs-priv.h"

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
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
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
