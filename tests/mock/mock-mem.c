/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the one device of the mock provider with its regions, windows and keys; ends with
 * mock_fini(), which finds what was left. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock-priv.h"

#define MAX_KEYS 4096

struct mock_mr {
	struct fab_mr fab;
	uint32_t index;
	int access;
	bool closed;
	unsigned bound;
};

struct mock_mw {
	struct fab_mw fab;
	uint32_t index, key;
	bool valid;
	struct mock_conn *conn;		/* type 2 */
	struct mock_mr *mr;
	uint8_t *mem;
	uint64_t addr, len;
	unsigned access;
};

struct mock_hca mock;
pthread_mutex_t mock_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct mock_mw *mws[MAX_KEYS];
static struct mock_mr *mrs[MAX_KEYS];
static uint32_t keys_end;		/* no index has been as high */

_Noreturn void mock_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("mock HCA: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

static struct mock_mw *to_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct mock_mw, fab.ibv);
}

static struct mock_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct mock_mr, fab.ibv);
}

/* ---- the device ---- */

void mock_init(void)
{
	memset(&mock, 0, sizeof(mock));
	mock.attr = (struct fab_device_attr){
		.max_qp_wr = 1024, .max_sge = MOCK_SGE, .max_mw = 1024,
		.caps = FAB_CAP_MW_TYPE_1 | FAB_CAP_MW_TYPE_2B,
	};
	mock.alloc_mw_fails_after = -1;
	keys_end = 1;
}

void mock_fini(void)
{
	if (mock.npd || mock.nqp || mock.nmr || mock.nmw)
		mock_die("left over: %u pds, %u queue pairs, %u regions, %u windows", mock.npd,
			 mock.nqp, mock.nmr, mock.nmw);
	if (mock.mw_allocs != mock.mw_deallocs)
		mock_die("%u windows were made and %u given back", mock.mw_allocs,
			 mock.mw_deallocs);
}

struct fab_pd *mock_pd_create(void)
{
	struct fab_pd *pd = calloc(1, sizeof(*pd));

	pd->ops = &fab_mock;
	pd->dma_lkey = mock.attr.caps & FAB_CAP_DMA_LKEY ? MOCK_DMA_LKEY : 0;
	LOCK_SCOPE(&mock_lock);
	mock.npd++;
	return pd;
}

void mock_pd_destroy(struct fab_pd *pd)
{
	LOCK_SCOPE(&mock_lock);
	if (mock.nqp || mock.nmr || mock.nmw)
		mock_die("pd destroyed with %u queue pairs, %u regions, %u windows", mock.nqp,
			 mock.nmr, mock.nmw);
	mock.npd--;
	free(pd);
}

static uint32_t free_index(void *const *table)
{
	for (uint32_t i = 1; i < MAX_KEYS; i++) {
		if (!table[i]) {
			keys_end = MAX(keys_end, i + 1);
			return i;
		}
	}
	mock_die("too many keys");
}

/* ---- regions ---- */

static void mr_set(struct mock_mr *mr, void *addr, size_t length, int access)
{
	mr->fab.ibv.addr = addr;
	mr->fab.ibv.length = length;
	mr->access = access;
}

struct ibv_mr *mock_reg_mr(struct fab_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct mock_mr *mr;

	if (!length && !(mock.attr.caps & FAB_CAP_REREG_MR)) {
		errno = ENOTSUP;
		return NULL;
	}
	if (mock.reg_mr_fails) {
		mock.reg_mr_fails--;
		errno = ENOMEM;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	mr->fab.pd = pd;
	LOCK_SCOPE(&mock_lock);
	mr->index = free_index((void *const *)mrs);
	mr->fab.ibv.lkey = mr->fab.ibv.rkey = (0x800000 + mr->index) << 8 | 0xf0;
	mr_set(mr, addr, length, access);
	mrs[mr->index] = mr;
	mock.nmr++;
	return &mr->fab.ibv;
}

int mock_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access)
{
	if (!(mock.attr.caps & FAB_CAP_REREG_MR))
		return -ENOTSUP;
	LOCK_SCOPE(&mock_lock);
	if (to_mr(ibv)->bound)
		mock_die("region changed under a window");
	mr_set(to_mr(ibv), addr, length, access);
	if (!mock.keys_stay)
		ibv->lkey = ibv->rkey = ibv_inc_rkey(ibv->rkey);
	return 0;
}

int mock_suspend_mr(struct ibv_mr *ibv, bool closed)
{
	if (!(mock.attr.caps & FAB_CAP_SUSPEND_MR))
		return -ENOTSUP;
	LOCK_SCOPE(&mock_lock);
	if (mock.suspend_fails) {
		mock.suspend_fails--;
		return -EIO;
	}
	to_mr(ibv)->closed = closed;
	return 0;
}

void mock_dereg_mr(struct ibv_mr *ibv)
{
	struct mock_mr *mr = to_mr(ibv);

	LOCK_SCOPE(&mock_lock);
	if (mr->bound)
		mock_die("region deregistered under %u windows", mr->bound);
	mrs[mr->index] = NULL;
	mock.nmr--;
	free(mr);
}

static struct mock_mr *mr_find(uint32_t rkey)
{
	for (unsigned i = 1; i < keys_end; i++) {
		if (mrs[i] && mrs[i]->fab.ibv.rkey == rkey && !mrs[i]->closed)
			return mrs[i];
	}
	return NULL;
}

void mock_check_sge(const struct fab_pd *pd, const struct ibv_sge *sge)
{
	const struct mock_mr *mr = mr_find(sge->lkey);

	if (mock.attr.caps & FAB_CAP_DMA_LKEY && sge->lkey == MOCK_DMA_LKEY)
		return;
	if (!mr || mr->fab.pd != pd ||
	    !range_ok(sge->addr - (uintptr_t)mr->fab.ibv.addr, sge->length, mr->fab.ibv.length))
		mock_die("%u bytes under key 0x%x, which is not good for them", sge->length,
			 sge->lkey);
}

/* ---- windows ---- */

/* Numbers of windows are scattered, those of regions are above them. */
static uint32_t mw_number(uint32_t index)
{
	return (uint32_t)((uint64_t)index * 5000011 % 0x7fffff) << 8;
}

struct ibv_mw *mock_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct mock_mw *mw;

	LOCK_SCOPE(&mock_lock);
	if (!(mock.attr.caps & FAB_CAP_MW(type)) || mock.windows_refused) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (mock.alloc_mw_fails_after >= 0 &&
	    mock.mw_allocs >= (unsigned)mock.alloc_mw_fails_after) {
		errno = ENOMEM;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	mw->index = free_index((void *const *)mws);
	mw->fab.pd = pd;
	mw->fab.ibv.type = type;
	mw->fab.ibv.rkey = mw->key = mw_number(mw->index) | 0xfa;
	mws[mw->index] = mw;
	mock.nmw++;
	mock.mw_allocs++;
	return &mw->fab.ibv;
}

static void unbind(struct mock_mw *mw)
{
	if (mw->valid && mw->mr)
		mw->mr->bound--;
	mw->valid = false;
	mw->mr = NULL;
	mw->conn = NULL;
}

int mock_dealloc_mw(struct ibv_mw *ibv)
{
	struct mock_mw *mw = to_mw(ibv);

	LOCK_SCOPE(&mock_lock);
	if (mock.dealloc_mw_fails) {
		mock.dealloc_mw_fails--;
		mock.deallocs_failed++;
		return -EBUSY;
	}
	unbind(mw);
	mws[mw->index] = NULL;
	mock.nmw--;
	mock.mw_deallocs++;
	free(mw);
	return 0;
}

unsigned mock_windows_of(const struct fab_pd *pd)
{
	unsigned n = 0;

	for (unsigned i = 1; i < keys_end; i++)
		n += mws[i] && mws[i]->fab.pd == pd;
	return n;
}

static struct mock_mw *mw_find(uint32_t rkey)
{
	for (unsigned i = 1; i < keys_end; i++) {
		if (mws[i] && mws[i]->key == rkey)
			return mws[i];
	}
	return NULL;
}

void mock_bind(struct mock_conn *c, const struct mock_wr *m)
{
	const struct ibv_mw_bind_info *info = &m->wr.bind_mw.bind_info;
	struct mock_mw *mw = to_mw(m->wr.bind_mw.mw);
	struct mock_mr *mr = to_mr(info->mr);

	if (m->mw_rkey != mw->key)
		mock_die("ibv_mw.rkey was 0x%x at the post of a bind, and the last key is 0x%x",
			 m->mw_rkey, mw->key);
	if (m->wr.bind_mw.rkey == mw->key || (m->wr.bind_mw.rkey ^ mw->key) >> 8)
		mock_die("window bound to key 0x%x, and its last was 0x%x", m->wr.bind_mw.rkey,
			 mw->key);
	if (mw->fab.ibv.type == IBV_MW_TYPE_2 && (mw->valid || !info->length))
		mock_die("window of type 2 bound when it was bound, or to nothing");
	if (info->length && (!(mr->access & IBV_ACCESS_MW_BIND) ||
			     ((info->mw_access_flags & IBV_ACCESS_REMOTE_WRITE) &&
			      !(mr->access & IBV_ACCESS_LOCAL_WRITE)) ||
			     !range_ok(info->addr - (uintptr_t)mr->fab.ibv.addr, info->length,
				       mr->fab.ibv.length)))
		mock_die("window bound to what its region does not allow");
	if (mw->fab.pd != c->pd || mr->fab.pd != c->pd)
		mock_die("window bound across pds");
	unbind(mw);
	mw->key = m->wr.bind_mw.rkey;
	if (!info->length)
		return;
	mw->valid = true;
	mw->conn = mw->fab.ibv.type == IBV_MW_TYPE_2 ? c : NULL;
	mw->mr = mr;
	mr->bound++;
	mw->mem = (uint8_t *)(uintptr_t)info->addr;
	mw->addr = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	mw->len = info->length;
	mw->access = info->mw_access_flags;
}

bool mock_invalidate(struct mock_conn *c, uint32_t rkey)
{
	struct mock_mw *mw = mw_find(rkey);

	if (!mw || mw->fab.ibv.type == IBV_MW_TYPE_1)
		return false;
	if (!mw->valid)
		mock_die("kernel panic: invalidate of key 0x%x, which is not bound", rkey);
	if (mw->conn != c)
		return false;
	unbind(mw);
	return true;
}

/* ---- the peer ---- */

/* NULL where it may not. */
static uint8_t *peer_mem(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len, int right)
{
	struct mock_mw *mw = mw_find(rkey);
	struct mock_mr *mr = mr_find(rkey);

	if (c->failed)
		return NULL;
	if (mw)
		return mw->valid && (!mw->conn || mw->conn == c) &&
			(mw->access & (unsigned)right) &&
				       range_ok(addr - mw->addr, len, mw->len) ?
			       mw->mem + (addr - mw->addr) : NULL;
	return mr && (mr->access & right) && mr->fab.pd == c->pd &&
			       range_ok(addr - (uintptr_t)mr->fab.ibv.addr, len,
					mr->fab.ibv.length) ?
		       (uint8_t *)(uintptr_t)addr : NULL;
}

static bool peer_may(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len, int right)
{
	LOCK_SCOPE(&mock_lock);
	return peer_mem(c, rkey, addr, len, right) != NULL;
}

bool mock_peer_write(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len)
{
	return peer_may(c, rkey, addr, len, IBV_ACCESS_REMOTE_WRITE);
}

bool mock_peer_read(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len)
{
	return peer_may(c, rkey, addr, len, IBV_ACCESS_REMOTE_READ);
}

void mock_peer_place(struct mock_conn *c, uint32_t rkey, uint64_t addr, const void *data,
		     size_t len)
{
	uint8_t *to;

	LOCK_SCOPE(&mock_lock);
	to = peer_mem(c, rkey, addr, len, IBV_ACCESS_REMOTE_WRITE);
	if (!to)
		mock_die("%zu bytes for key 0x%x, which is not alive for them", len, rkey);
	memcpy(to, data, len);
}

struct ibv_wc mock_peer_inv(struct mock_conn *c, uint32_t rkey)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_INV,
			     .invalidated_rkey = rkey };

	LOCK_SCOPE(&mock_lock);
	if (c->failed) {
		wc.status = IBV_WC_WR_FLUSH_ERR;
	} else if (!mock_invalidate(c, rkey)) {
		wc.status = IBV_WC_REM_INV_REQ_ERR;
		mock_conn_fail(c);
	}
	return wc;
}

unsigned mock_live_keys(void)
{
	unsigned n = 0;

	LOCK_SCOPE(&mock_lock);
	for (unsigned i = 1; i < keys_end; i++) {
		n += mws[i] && mws[i]->valid;
		n += mrs[i] && mrs[i]->fab.ibv.length && (mrs[i]->access & IBV_ACCESS_REMOTE_WRITE);
	}
	return n;
}
