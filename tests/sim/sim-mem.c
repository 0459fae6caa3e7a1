/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the key table of the sim provider: memory regions and windows.  A key is a slot number and
 * an eight bit generation, as on real devices; a slot's generations go on when it is used again.  A
 * window is bound and invalidated when it is the turn of the request, some time after the post.
 * One thread.  Nothing here fails a connection; callers do with the text they get. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim-fab-priv.h"

enum key_kind { KEY_FREE, KEY_MR, KEY_MW };

struct key {
	enum key_kind kind;
	uint8_t gen;
	const struct sim_pd *pd;
	uint64_t addr, len;		/* as peers and lists of elements call it */
	uint64_t shift;			/* added to it: the memory */
	int access;
	bool closed;			/* region: suspended */
	unsigned closings;		/* so often */
	bool written;			/* by a peer, since it was opened */
	bool held;			/* region */
	uint64_t conn_id;		/* window: the connection it is bound on, or one of: */
#define NOT_BOUND 0
#define ON_ANY_CONN UINT64_MAX		/* type 1 */
	uint32_t mr_slot;		/* window: what it was bound to */
};

struct sim_mr {
	struct fab_mr base;
	uint32_t slot;
};

struct sim_mw {
	struct fab_mw base;
	uint32_t slot;
	uint32_t posted;		/* the key of the last bind that was posted */
};

static struct key *keys;
static uint32_t nslots;
static unsigned nkeys, nwindows, max_windows = SIM_MAX_MW;
#define REREG (FAB_CAP_REREG_MR | FAB_CAP_SUSPEND_MR)
static unsigned offered = FAB_CAP_DMA_LKEY | REREG | FAB_CAP_MW_TYPE_1 | FAB_CAP_MW_TYPE_2B;

static void offer(unsigned caps, bool yes)
{
	offered = yes ? offered | caps : offered & ~caps;
}

unsigned sim_caps(void)
{
	return offered;
}

void sim_offer_again(unsigned caps)
{
	offered = caps;
	max_windows = SIM_MAX_MW;
}

void sim_offer_local_dma_lkey(bool yes)
{
	offer(FAB_CAP_DMA_LKEY, yes);
}

void sim_offer_from_env(void)
{
	const char *device = getenv("SIM_DEVICE");

	if (!device)
		return;
	assert(!strcmp(device, "nic") || !strcmp(device, "nic-1"));
	offer(FAB_CAP_MW_TYPE_2B, !strcmp(device, "nic"));
	offer(FAB_CAP_DMA_LKEY | REREG, false);
}

void sim_offer_rereg(bool yes)
{
	offer(REREG, yes);
}

void sim_offer_windows(bool type_1, bool type_2b)
{
	offer(FAB_CAP_MW_TYPE_1, type_1);
	offer(FAB_CAP_MW_TYPE_2B, type_2b);
}

unsigned sim_keys(void)
{
	return nkeys;
}

static uint32_t key_new(enum key_kind kind, const struct sim_pd *pd)
{
	uint32_t i = 0;

	while (i < nslots && keys[i].kind != KEY_FREE)
		i++;
	if (i == nslots) {
		keys = reallocarray(keys, nslots + 1, sizeof(*keys));
		assert(keys);
		/* All values, but not by chance: what follows in a run is not to depend on keys. */
		keys[nslots].gen = (uint8_t)(97 * nslots);
		nslots++;
	}
	keys[i] = (struct key){ .kind = kind, .gen = (uint8_t)(keys[i].gen + 1), .pd = pd };
	nkeys++;
	return i;
}

static void key_free(uint32_t slot)
{
	keys[slot].kind = KEY_FREE;
	if (--nkeys)
		return;
	free(keys);
	keys = NULL;
	nslots = 0;
}

/* Slot 0 stands for no key at all, so that an rkey of 0 reaches nothing. */
static uint32_t key_value(uint32_t slot)
{
	return (slot + 1) << 8 | keys[slot].gen;
}

static struct key *key_find(uint32_t value)
{
	uint32_t slot = (value >> 8) - 1;

	if (slot >= nslots || keys[slot].kind == KEY_FREE || keys[slot].gen != (uint8_t)value)
		return NULL;
	return &keys[slot];
}

int sim_pd_create(struct fab_conn *conn, struct fab_pd **pd)
{
	struct sim_pd *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->base.ops = &fab_sim;
	p->base.dma_lkey = offered & FAB_CAP_DMA_LKEY ? SIM_DMA_LKEY : 0;
	p->host = to_conn(conn)->host;
	*pd = &p->base;
	return 0;
}

void sim_pd_destroy(struct fab_pd *pd)
{
	struct sim_pd *p = container_of(pd, struct sim_pd, base);

	for (uint32_t i = 0; i < nslots; i++)
		assert(keys[i].kind == KEY_FREE || keys[i].pd != p);
	free(p);
}

static void mr_set(struct sim_mr *mr, void *addr, size_t length, uint64_t iova, int access)
{
	struct key *k = &keys[mr->slot];

	k->addr = iova;
	k->shift = (uintptr_t)addr - iova;
	k->len = length;
	k->access = access;
	k->closed = k->written = false;
	mr->base.ibv.addr = addr;
	mr->base.ibv.length = length;
	mr->base.ibv.lkey = mr->base.ibv.rkey = key_value(mr->slot);
}

struct ibv_mr *sim_reg_mr(struct fab_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct sim_mr *mr;

	if (!length && !(offered & FAB_CAP_REREG_MR)) {
		errno = ENOTSUP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	mr->base.pd = pd;
	mr->slot = key_new(KEY_MR, container_of(pd, struct sim_pd, base));
	mr_set(mr, addr, length, iova, access);
	return &mr->base.ibv;
}

static bool has_windows(const struct sim_mr *mr)
{
	for (uint32_t i = 0; i < nslots; i++) {
		if (keys[i].kind == KEY_MW && keys[i].conn_id != NOT_BOUND &&
		    keys[i].mr_slot == mr->slot)
			return true;
	}
	return false;
}

int sim_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access)
{
	struct sim_mr *mr = container_of(ibv, struct sim_mr, base.ibv);

	if (!(offered & FAB_CAP_REREG_MR))
		return -ENOTSUP;
	if (has_windows(mr))
		return -EBUSY;
	keys[mr->slot].gen++;
	mr_set(mr, addr, length, iova, access);
	return 0;
}

int sim_suspend_mr(struct ibv_mr *ibv, bool closed)
{
	struct sim_mr *mr = container_of(ibv, struct sim_mr, base.ibv);

	if (!(offered & FAB_CAP_SUSPEND_MR))
		return -ENOTSUP;
	if (has_windows(mr))
		return -EBUSY;
	keys[mr->slot].closed = closed;
	keys[mr->slot].closings += closed;
	if (closed)
		keys[mr->slot].written = false;
	return 0;
}

int sim_hold_mr(struct ibv_mr *ibv)
{
	struct key *k = &keys[container_of(ibv, struct sim_mr, base.ibv)->slot];

	if (!(offered & FAB_CAP_SUSPEND_MR))
		return -ENOTSUP;
	assert(!k->held);
	if (k->closed || k->written)
		return -EBUSY;
	k->held = true;
	return 0;
}

void sim_release_mr(struct ibv_mr *ibv)
{
	struct key *k = &keys[container_of(ibv, struct sim_mr, base.ibv)->slot];

	assert(k->held);
	k->held = false;
}

void sim_dereg_mr(struct ibv_mr *ibv)
{
	struct sim_mr *mr = container_of(ibv, struct sim_mr, base.ibv);

	assert(!has_windows(mr));
	key_free(mr->slot);
	free(mr);
}

const char *sim_lkey_check(const struct sim_conn *c, const struct ibv_sge *sge, int access)
{
	const struct key *k;

	if (!sge->length || (sge->lkey == SIM_DMA_LKEY && offered & FAB_CAP_DMA_LKEY))
		return NULL;
	k = key_find(sge->lkey);
	if (!k || k->kind != KEY_MR)
		return "unknown local key";
	if (k->closed)
		return "a local key that is closed";
	if (k->pd != c->pd)
		return "local key of another protection domain";
	if ((k->access & access) != access)
		return "local key without the right to write";
	if (sge->addr < k->addr || !range_ok(sge->addr - k->addr, sge->length, k->len))
		return "outside the range of the local key";
	return NULL;
}

const char *sim_rkey_check(const struct sim_conn *c, uint32_t rkey, uint64_t addr, uint64_t len)
{
	const struct key *k = key_find(rkey);

	if (!k)
		return "unknown or dead remote key";
	if (k->pd != c->pd)
		return "remote key of another protection domain";
	if (k->closed)
		return "a remote key that is closed";
	if (k->kind == KEY_MW && k->conn_id != c->id && k->conn_id != ON_ANY_CONN)
		return "window not bound on this connection";
	if (!(k->access & IBV_ACCESS_REMOTE_WRITE))
		return "remote key without the right to write";
	if (addr < k->addr || !range_ok(addr - k->addr, len, k->len))
		return "outside the range of the remote key";
	return NULL;
}

void sim_key_written(uint32_t rkey)
{
	struct key *k = key_find(rkey);

	/* There is no other thread that would let the key go. */
	assert(!k->held);
	k->written = true;
}

unsigned sim_key_closings(uint32_t rkey)
{
	const struct key *k = key_find(rkey);

	return k ? k->closings : 0;
}

void *sim_key_mem(uint32_t key, uint64_t addr)
{
	const struct key *k = key_find(key);

	return (void *)(uintptr_t)(addr + (k ? k->shift : 0));
}

/* ---- windows ---- */

static struct sim_mw *to_mw(const struct ibv_mw *ibv)
{
	return container_of(ibv, struct sim_mw, base.ibv);
}

void sim_limit_windows(unsigned n)
{
	max_windows = n;
}

struct ibv_mw *sim_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct sim_mw *mw;

	if (!(offered & FAB_CAP_MW(type))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mw = nwindows < max_windows ? calloc(1, sizeof(*mw)) : NULL;
	if (!mw) {
		errno = ENOMEM;
		return NULL;
	}
	nwindows++;
	mw->slot = key_new(KEY_MW, container_of(pd, struct sim_pd, base));
	mw->posted = key_value(mw->slot);
	mw->base.pd = pd;
	mw->base.ibv.type = type;
	mw->base.ibv.rkey = mw->posted;
	return &mw->base.ibv;
}

/* Is a request with @mw still in a queue? */
static bool is_posted(const struct sim_mw *mw)
{
	struct sim_conn *c;
	struct sim_send *s;

	list_for_each(c, &sim_all_conns, all) {
		list_for_each(s, &c->sq, link) {
			if (s->wr.opcode == IBV_WR_BIND_MW && s->wr.bind_mw.mw == &mw->base.ibv)
				return true;
			if (s->wr.opcode == IBV_WR_LOCAL_INV &&
			    s->wr.invalidate_rkey >> 8 == mw->posted >> 8)
				return true;
		}
	}
	return false;
}

int sim_dealloc_mw(struct ibv_mw *ibv)
{
	struct sim_mw *mw = to_mw(ibv);

	assert(!is_posted(mw));
	key_free(mw->slot);
	nwindows--;
	free(mw);
	return 0;
}

bool sim_mw_bound(const struct ibv_mw *ibv)
{
	return keys[to_mw(ibv)->slot].conn_id != NOT_BOUND;
}

bool sim_mw_refused(const struct sim_conn *c, const struct ibv_send_wr *wr)
{
	if (wr->opcode != IBV_WR_BIND_MW || c->state != SIM_UP)
		return false;
	return c->host->mw_fault == SIM_MW_NO_BIND ||
	       (c->host->mw_fault == SIM_MW_NO_UNBIND && !wr->bind_mw.bind_info.length);
}

const char *sim_mw_post(const struct sim_conn *c, const struct ibv_send_wr *wr)
{
	struct sim_mw *mw = to_mw(wr->bind_mw.mw);
	const char *why = fab_bind_check(wr, &c->pd->base, mw->posted);

	if (!why)
		mw->posted = wr->bind_mw.rkey;
	return why;
}

const char *sim_mw_bind(const struct sim_conn *c, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct sim_mw *mw = to_mw(wr->bind_mw.mw);
	bool type_2 = mw->base.ibv.type == IBV_MW_TYPE_2;
	struct key *k = &keys[mw->slot];

	if (type_2 && k->conn_id != NOT_BOUND)
		return "a window of type 2 that is bound";
	k->gen = (uint8_t)wr->bind_mw.rkey;
	k->mr_slot = container_of(info->mr, struct sim_mr, base.ibv)->slot;
	k->addr = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	k->shift = keys[k->mr_slot].shift + info->addr - k->addr;
	k->len = info->length;
	k->access = (int)info->mw_access_flags;
	k->conn_id = !info->length ? NOT_BOUND : type_2 ? c->id : ON_ANY_CONN;
	return NULL;
}

const char *sim_mw_invalidate(const struct sim_conn *c, uint32_t rkey)
{
	struct key *k = key_find(rkey);

	if (!k)
		return "unknown or dead key to invalidate";
	if (k->kind != KEY_MW)
		return "a memory region cannot be invalidated";
	if (k->conn_id == ON_ANY_CONN)
		return "a window of type 1 cannot be invalidated";
	if (k->conn_id != c->id)
		return "window to invalidate is not bound on this connection";
	k->conn_id = NOT_BOUND;
	return NULL;
}

bool sim_mw_on(const struct sim_conn *c)
{
	for (uint32_t i = 0; i < nslots; i++) {
		if (keys[i].kind == KEY_MW && keys[i].conn_id == c->id)
			return true;
	}
	return false;
}
