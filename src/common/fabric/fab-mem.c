/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and windows: checks that are the same for all providers, and the call through.
 * Memory for regions.  Owns nothing.  Threads and errors as fabric.h says. */
#include <config.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric.h"
#include "util.h"

#define IOVA_PAGE 4096u			/* the smallest page of a device */

void *fab_alloc(struct fab_pd *pd, size_t length)
{
	void *mem = mmap(NULL, length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	/* With transparent huge pages, "always", the first byte would take 2 MiB. */
	if (pd->ops->hold_mr)
		madvise(mem, length, MADV_NOHUGEPAGE);
	return mem;
}

/* MADV_FREE would free nothing before the system is short of memory, and RSS and the memory of a
 * container would stay as they are.  Fails for locked memory alone, which then stays. */
void fab_give_back(void *mem, size_t length)
{
	/* The kernel rounds the end up, into memory of others; pages may be of 64 KiB. */
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = align_up((uintptr_t)mem, page);
	uintptr_t end = align_down((uintptr_t)mem + length, page);

	if (start < end)
		madvise((void *)start, end - start, MADV_DONTNEED);
}

void fab_free(void *mem, size_t length)
{
	if (mem)
		munmap(mem, length);
}

struct ibv_mr *fab_reg_mr(struct fab_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	if (!fab_access_ok(addr, length, access)) {
		errno = EINVAL;
		return NULL;
	}
	mr = pd->ops->reg_mr(pd, addr, length, (uintptr_t)addr, access);
	if (mr)
		fab_mr_is(mr, (uintptr_t)addr, access);
	return mr;
}

struct ibv_mr *fab_reg_mr_iova(struct fab_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	struct ibv_mr *mr = NULL;

	if (!fab_access_ok(addr, length, access) || !length || iova > UINT64_MAX - length ||
	    (((uintptr_t)addr ^ iova) & (IOVA_PAGE - 1))) {
		errno = EINVAL;
		return NULL;
	}
	if (pd->ops->mr_iova)
		mr = pd->ops->reg_mr(pd, addr, length, iova, access);
	if (!mr)
		return fab_reg_mr(pd, addr, length, access);
	fab_mr_is(mr, iova, access);
	return mr;
}

void fab_dereg_mr(struct ibv_mr *mr)
{
	if (mr)
		fab_mr(mr)->pd->ops->dereg_mr(mr);
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
	const struct fab_mr *mr = fab_mr(info->mr);
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
	if (info->length > FAB_MW_LEN_MAX ||
	    !fab_mr_covers(info->mr, pd, info->addr, info->length, 0))
		return "a range outside of its region";
	return NULL;
}
