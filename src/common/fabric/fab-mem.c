/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and windows: the checks that are the same for all providers, and the call through to
 * them.  Owns nothing.  Threads and errors are those of fabric.h. */
#include <config.h>

#include <errno.h>

#include "fab-provider.h"
#include "util.h"

#define IOVA_PAGE 4096u			/* the least that a device translates */

/* The rule of verbs: what a peer may write must be writable here. */
static bool access_ok(int access)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;

	return !(access & ~known) &&
	       (!(access & IBV_ACCESS_REMOTE_WRITE) || (access & IBV_ACCESS_LOCAL_WRITE));
}

static struct fab_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct fab_mr, ibv);
}

struct ibv_mr *fab_reg_mr(struct fab_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	if (!access_ok(access) || (uintptr_t)addr > UINTPTR_MAX - length) {
		errno = EINVAL;
		return NULL;
	}
	mr = pd->ops->reg_mr(pd, addr, length, access);
	if (mr) {
		to_mr(mr)->access = access;
		to_mr(mr)->iova = (uintptr_t)addr;
	}
	return mr;
}

struct ibv_mr *fab_reg_mr_iova(struct fab_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	struct ibv_mr *mr;

	if (!access_ok(access) || !length || iova > UINT64_MAX - length ||
	    (uintptr_t)addr > UINTPTR_MAX - length ||
	    (((uintptr_t)addr ^ iova) & (IOVA_PAGE - 1))) {
		errno = EINVAL;
		return NULL;
	}
	mr = pd->ops->reg_mr_iova ? pd->ops->reg_mr_iova(pd, addr, length, iova, access) : NULL;
	if (!mr)
		return fab_reg_mr(pd, addr, length, access);
	to_mr(mr)->access = access;
	to_mr(mr)->iova = iova;
	return mr;
}

uint64_t fab_mr_iova(const struct ibv_mr *mr)
{
	return container_of(mr, struct fab_mr, ibv)->iova;
}

int fab_rereg_mr(struct ibv_mr *mr, void *addr, size_t length, int access)
{
	int rc;

	if (!access_ok(access) || (uintptr_t)addr > UINTPTR_MAX - length)
		return -EINVAL;
	rc = to_mr(mr)->pd->ops->rereg_mr(mr, addr, length, access);
	if (!rc) {
		to_mr(mr)->access = access;
		to_mr(mr)->iova = (uintptr_t)addr;
	}
	return rc;
}

int fab_rereg_mr_iova(struct ibv_mr *mr, void *addr, size_t length, uint64_t iova, int access)
{
	const struct fab_provider *ops = to_mr(mr)->pd->ops;
	int rc;

	if (!ops->rereg_mr_iova)
		return fab_rereg_mr(mr, addr, length, access);
	if (!access_ok(access) || (uintptr_t)addr > UINTPTR_MAX - length ||
	    iova > UINT64_MAX - length)
		return -EINVAL;
	rc = ops->rereg_mr_iova(mr, addr, length, iova, access);
	if (!rc) {
		to_mr(mr)->access = access;
		to_mr(mr)->iova = iova;
	}
	return rc;
}

int fab_revoke_mr(struct ibv_mr *mr)
{
	return fab_rereg_mr(mr, NULL, 0, 0);
}

bool fab_mr_covers(const struct ibv_mr *ibv, const struct fab_pd *pd, uint64_t addr, uint64_t len,
		   int access)
{
	const struct fab_mr *mr = container_of(ibv, struct fab_mr, ibv);

	return mr->pd == pd && (mr->access & access) == access &&
	       range_ok(addr - mr->iova, len, ibv->length);
}

void fab_dereg_mr(struct ibv_mr *mr)
{
	if (mr)
		to_mr(mr)->pd->ops->dereg_mr(mr);
}

struct ibv_mw *fab_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	if (!pd->ops->alloc_mw) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return pd->ops->alloc_mw(pd, type);
}

int fab_dealloc_mw(struct ibv_mw *mw)
{
	return mw ? container_of(mw, struct fab_mw, ibv)->pd->ops->dealloc_mw(mw) : 0;
}

const char *fab_bind_check(const struct ibv_send_wr *wr, const struct fab_pd *pd, uint32_t last)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct fab_mw *mw = container_of(wr->bind_mw.mw, struct fab_mw, ibv);
	const struct fab_mr *mr = to_mr(info->mr);
	bool type_2 = mw->ibv.type == IBV_MW_TYPE_2;

	if (mw->pd != pd || mr->pd != pd)
		return "a window or region of another protection domain";
	if (mw->ibv.rkey != last)
		return "a window whose ibv_mw.rkey is not its last key";
	if (wr->bind_mw.rkey >> 8 != last >> 8)
		return "the key of another window";
	if (type_2 && wr->bind_mw.rkey == last)
		return "a window of type 2 under its last key";
	if (!type_2 && wr->bind_mw.rkey != ibv_inc_rkey(last))
		return "a window of type 1 with other than its next key";
	if (info->length == 0)
		return type_2 ? "a window of type 2 to nothing" : NULL;
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return "a region without the right to bind windows";
	if ((info->mw_access_flags & IBV_ACCESS_REMOTE_WRITE) &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return "a writable window to a region that is not";
	if (info->length > FAB_MW_LEN_MAX || !fab_mr_covers(info->mr, pd, info->addr, info->length, 0))
		return "a range outside of its region";
	return NULL;
}
