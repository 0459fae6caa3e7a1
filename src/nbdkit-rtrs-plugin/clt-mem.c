/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a path's memory regions and its session's arena; see clt-mem.h for threads and the two ways. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clt-mem.h"
#include "clt-sess.h"

#define SLOT_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
/* The peer gets in through windows only. */
#define WINDOW_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
/* What a slot's memory is called towards the fabric, and so the server, wherever it lies: all below where
 * programs have memory, and each with room for the longest request, which is less than 28 bits. */
#define SLOT_IOVA_SHIFT 29

/* Of the arena and of clt_path.mrs: the control slot is the last. */
static unsigned mem_index(const struct clt_slot *slot, const struct clt_sess *sess)
{
	return slot == &sess->ctl ? sess->slots.n : slot->id;
}

static uint8_t *arena_at(const struct clt_arena *arena, unsigned i)
{
	return arena->mem + i * arena->room;
}

static uint8_t *slot_mem(const struct clt_slot *slot, const struct clt_path *path)
{
	return arena_at(&path->sess->arena, mem_index(slot, path->sess));
}

static uint64_t iova_at(unsigned i)
{
	return (uint64_t)(i + 1) << SLOT_IOVA_SHIFT;
}

static uint8_t *slot_buf(const struct clt_slot *slot)
{
	return (uint8_t *)slot->op->buf + slot->off;
}

static bool has_data(const struct clt_slot *slot, enum rtrs_dir dir)
{
	return slot->op->dir == dir && slot->op->buf && slot->len;
}

/* ---- requests ---- */

void clt_mem_fill(struct clt_slot *slot, struct clt_path *path)
{
	if (path->bounce && has_data(slot, RTRS_DIR_WRITE))
		memcpy(slot_mem(slot, path), slot_buf(slot), slot->len);
}

void clt_mem_fetch(struct clt_slot *slot, struct clt_path *path)
{
	if (path->bounce && has_data(slot, RTRS_DIR_READ))
		memcpy(slot_buf(slot), slot_mem(slot, path), slot->len);
}

static struct ibv_mr *slot_mr(const struct clt_slot *slot, const struct clt_path *path)
{
	return path->all_mr ? path->all_mr : path->mrs[mem_index(slot, path->sess)];
}

int clt_mem_map(struct clt_slot *slot, struct clt_path *path, struct ibv_sge *data,
		struct rtrs_req *req)
{
	uint8_t *addr = path->bounce ? slot_mem(slot, path) : slot_buf(slot);
	struct ibv_mr *mr = slot_mr(slot, path);
	/* Only what has a region of its own has a name. */
	uint64_t iova = path->bounce ? fab_mr_iova(mr) : (uintptr_t)addr;
	int r = 0;

	if (!has_data(slot, RTRS_DIR_READ)) {
		data->addr = iova;
		data->length = slot->len;
		data->lkey = path->bounce ? mr->lkey : path->dma_lkey;
		return 0;
	}
	if (clt_reg_is_window(path->mode))
		r = clt_key_map(slot, path, mr, iova, &req->desc, &req->need_inval);
	else if (path->mode == FRWR_REREG)
		r = fab_rereg_mr_iova(mr, addr, slot->len, iova_at(mem_index(slot, path->sess)),
				      SLOT_RIGHTS);
	if (r < 0)
		return r;
	if (!clt_reg_is_window(path->mode))
		req->desc = (struct rtrs_desc){ fab_mr_iova(mr), mr->rkey, slot->len };
	req->has_desc = true;
	return 0;
}

void clt_mem_unmap(struct clt_slot *slot, struct clt_path *path)
{
	if (path->rereg && has_data(slot, RTRS_DIR_READ))
		fab_revoke_mr(path->mrs[mem_index(slot, path->sess)]);
}

uint32_t clt_mem_hdr_lkey(const struct clt_slot *slot, const struct clt_path *path)
{
	if (!path->bounce)
		return path->dma_lkey;
	return slot == &path->sess->ctl ? path->ctl_mr->lkey : path->slots_mr->lkey;
}

/* ---- regions ---- */

static int arena_init(struct clt_arena *arena, struct fab_pd *pd, unsigned n, size_t room)
{
	void *mem = fab_alloc(pd, n * room);

	if (!mem)
		return -errno;
	*arena = (struct clt_arena){ .mem = mem, .room = room, .n = n };
	return 0;
}

void clt_mem_arena_fini(struct clt_arena *arena)
{
	fab_free(arena->mem, arena->n * arena->room);
	arena->mem = NULL;
}

/* Regions for what is sent from the slots themselves. */
static int headers_attach(struct clt_path *path)
{
	struct clt_sess *sess = path->sess;

	path->slots_mr = fab_reg_mr(path->pd, sess->slots.slot,
				    sess->slots.n * sizeof(*sess->slots.slot), IBV_ACCESS_LOCAL_WRITE);
	if (!path->slots_mr)
		return -errno;
	path->ctl_mr = fab_reg_mr(path->pd, &sess->ctl, sizeof(sess->ctl), IBV_ACCESS_LOCAL_WRITE);
	return path->ctl_mr ? 0 : -errno;
}

static int regions_attach(struct clt_path *path)
{
	struct clt_sess *sess = path->sess;
	unsigned n = sess->slots.n + 1;
	int rights = clt_reg_is_window(path->mode) ? WINDOW_RIGHTS : SLOT_RIGHTS, r = 0;

	if (!path->bounce && path->mode != FRWR_REREG) {
		path->all_mr = fab_reg_mr(path->pd, NULL, SIZE_MAX, rights);
		return path->all_mr ? 0 : -errno;
	}
	path->mrs = calloc(n, sizeof(struct ibv_mr *));
	if (!path->mrs)
		return -ENOMEM;
	if (path->bounce && !sess->arena.mem)
		r = arena_init(&sess->arena, path->pd, n,
			       align_up(atomic_load(&sess->max_io_size), 4096));
	if (r == 0 && path->bounce)
		r = headers_attach(path);
	for (unsigned i = 0; r == 0 && i < n; i++) {
		if (path->bounce)
			path->mrs[i] = fab_reg_mr_iova(path->pd, arena_at(&sess->arena, i),
						       sess->arena.room, iova_at(i), rights);
		else
			path->mrs[i] = fab_reg_mr(path->pd, NULL, 0, rights);
		if (!path->mrs[i])
			r = -errno;
	}
	return r;
}

void clt_mem_fail(struct clt_path *path, int err)
{
	const struct clt_arena *arena = &path->sess->arena;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -ENOMEM && arena->mem && limit.rlim_cur != RLIM_INFINITY)
		clt_path_fail(path, err, "cannot register %zu KiB of memory with the RDMA device: at "
			      "most %llu KiB may be locked; raise that limit (RLIMIT_MEMLOCK: ulimit "
			      "-l, systemd's LimitMEMLOCK=)", arena->n * arena->room / 1024,
			      (unsigned long long)limit.rlim_cur / 1024);
	else
		clt_path_fail(path, err, "cannot register memory: %s", strerror(-err));
}

int clt_mem_attach(struct clt_path *path)
{
	int r;

	if (path->mrs || path->all_mr)
		return 0;
	r = regions_attach(path);
	if (r < 0) {
		clt_mem_fail(path, r);
		clt_mem_detach(path);
	}
	return r;
}

void clt_mem_detach(struct clt_path *path)
{
	fab_dereg_mr(path->all_mr);
	path->all_mr = NULL;
	if (!path->mrs)
		return;
	for (unsigned i = 0; i <= path->sess->slots.n && path->mrs[i]; i++)
		fab_dereg_mr(path->mrs[i]);
	free(path->mrs);
	path->mrs = NULL;
	fab_dereg_mr(path->slots_mr);
	fab_dereg_mr(path->ctl_mr);
	path->slots_mr = path->ctl_mr = NULL;
}
