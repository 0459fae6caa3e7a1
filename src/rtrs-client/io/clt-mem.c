/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory regions of an attempt and the arena of the session; clt-io.h has the ways. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clt-io-priv.h"

#define SLOT_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
/* The peer reaches this memory through windows only. */
#define WINDOW_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
/* The addresses of slots towards the fabric, and so the server, which do not depend on where the
 * memory lies.  All are below the addresses of any program's memory; each has room for the longest
 * request, which is less than 28 bits. */
#define SLOT_IOVA_SHIFT 29

/* The place of @slot in the arena and in clt_attempt.mrs: the control slot has the last. */
static unsigned mem_index(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return slot == clt_slot_ctl(att->io) ? att->io->arena.n - 1 : slot->id;
}

/* True if @slot, with the bytes that it has, has a place in the arena. */
static bool has_place(const struct clt_slot *slot, const struct clt_attempt *att)
{
	const struct clt_arena *arena = &att->io->arena;

	return slot->len <= arena->room &&
	       (slot == clt_slot_ctl(att->io) || slot->id < arena->n - 1);
}

static uint8_t *arena_at(const struct clt_arena *arena, unsigned i)
{
	return arena->mem + i * arena->room;
}

static uint8_t *slot_mem(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return arena_at(&att->io->arena, mem_index(slot, att));
}

static uint64_t iova_at(unsigned i)
{
	return (uint64_t)(i + 1) << SLOT_IOVA_SHIFT;
}

static uint8_t *slot_buf(const struct clt_slot *slot)
{
	return (uint8_t *)slot->op->buf + slot->off;
}

/* The first slot->len bytes become bytes of the operation's user.  Returns whether other users
 * may have had them. */
static bool slot_changes_user(struct clt_slot *slot)
{
	uint64_t user = slot->op->user;

	if (user && slot->user == user) {
		slot->used = MAX(slot->used, slot->len);
		return false;
	}
	slot->user = slot->len >= slot->used ? user : 0;
	slot->used = MAX(slot->used, slot->len);
	return true;
}

void clt_mem_enter(struct clt_slot *slot, struct clt_attempt *att)
{
	uint8_t *mem;
	bool changes;

	/* Cut for another path: slot_encode() refuses it, because att->max_io is within the room,
	 * and att->depth within the slots. */
	if (!has_place(slot, att))
		return;
	mem = slot_mem(slot, att);
	changes = slot_changes_user(slot);
	if (slot->op->dir == RTRS_DIR_WRITE)
		memcpy(mem, slot_buf(slot), slot->len);
	else if (changes)
		memset(mem, 0, slot->len);
}

void clt_mem_copy_out(struct clt_slot *slot, struct clt_attempt *att)
{
	memcpy(slot_buf(slot), slot_mem(slot, att), slot->len);
}

const uint8_t *clt_mem_data(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return att->way == CLT_MEM_BOUNCE ? slot_mem(slot, att) : slot_buf(slot);
}

static struct ibv_mr *slot_mr(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return att->all_mr ? att->all_mr : att->mrs[mem_index(slot, att)];
}

int clt_mem_map(struct clt_slot *slot, struct clt_attempt *att, struct ibv_sge *data,
		struct rtrs_req *req)
{
	bool bounce = att->way == CLT_MEM_BOUNCE;
	struct ibv_mr *mr = att->way == CLT_MEM_REREG ? NULL : slot_mr(slot, att);
	/* Only with CLT_MEM_BOUNCE a slot has another address towards the fabric (iova_at()). */
	uint64_t iova = bounce ? fab_mr_iova(mr) : (uintptr_t)slot_buf(slot);
	struct frwr_handle h;
	int r = 0;

	if (!clt_mem_has_data(slot, RTRS_DIR_READ)) {
		data->addr = iova;
		data->length = slot->len;
		data->lkey = bounce ? mr->lkey : att->dma_lkey;
		return 0;
	}
	if (att->way == CLT_MEM_REREG)
		r = frwr_map(clt_mem_key(slot, att), NULL, iova, slot->len, FRWR_PEER_WRITES, &h);
	else if (clt_key_is_window(att->mode))
		r = clt_key_map(slot, att, mr, iova, &h, &req->need_inval);
	else
		h = (struct frwr_handle){ iova, mr->rkey, slot->len };
	if (r < 0)
		return r;
	req->desc = (struct rtrs_desc){ h.addr, h.rkey, h.len };
	req->has_desc = true;
	return 0;
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

static int keys_attach(struct clt_attempt *att, unsigned n)
{
	int r = frwr_pool_create(&att->keys, att->pd, FRWR_REREG, n);

	if (r == 0)
		frwr_pool_zero_based(att->keys);
	return r;
}

static int regions_attach(struct clt_attempt *att)
{
	struct clt_io *io = att->io;
	const struct clt_slot_table *slots = &io->slots;
	unsigned n = MIN(slots->n, (unsigned)CLT_ARENA_SLOTS) + 1;
	int rights = clt_key_is_window(att->mode) ? WINDOW_RIGHTS : SLOT_RIGHTS, r = 0;

	if (att->way == CLT_MEM_REREG)
		return keys_attach(att, slots->n + 1);
	if (att->way == CLT_MEM_DIRECT) {
		att->all_mr = fab_reg_mr(att->pd, NULL, SIZE_MAX, rights);
		return att->all_mr ? 0 : -errno;
	}
	att->mrs = calloc(n, sizeof(struct ibv_mr *));
	if (!att->mrs)
		return -ENOMEM;
	if (!io->arena.mem)
		r = arena_init(&io->arena, att->pd, n,
			       align_up(atomic_load(&io->max_io_size), 4096));
	if (r == 0) {
		att->max_io = MIN(att->max_io, (uint32_t)io->arena.room);
		/* Headers are sent from the slots themselves. */
		att->slots_mr = fab_reg_mr(att->pd, slots->slot,
					   (slots->n + 1) * sizeof(*slots->slot),
					   IBV_ACCESS_LOCAL_WRITE);
		r = att->slots_mr ? 0 : -errno;
	}
	for (unsigned i = 0; r == 0 && i < n; i++) {
		att->mrs[i] = fab_reg_mr_iova(att->pd, arena_at(&io->arena, i), io->arena.room,
					      iova_at(i), rights);
		if (!att->mrs[i])
			r = -errno;
	}
	return r;
}

void clt_mem_why(const struct clt_attempt *att, int err, char *why, size_t len)
{
	const struct clt_arena *arena = &att->io->arena;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (err == -ENOMEM && arena->mem && limit.rlim_cur != RLIM_INFINITY)
		snprintf(why, len,
			 "cannot register %zu KiB of memory with the RDMA device: at most %llu KiB "
			 "may be locked; raise that limit (RLIMIT_MEMLOCK: ulimit -l, systemd's "
			 "LimitMEMLOCK=)", arena->n * arena->room / 1024,
			 (unsigned long long)limit.rlim_cur / 1024);
	else
		snprintf(why, len, "cannot register memory: %s", strerror(-err));
}

int clt_mem_attach(struct clt_attempt *att, char *why, size_t len)
{
	int r;

	if (att->mrs || att->all_mr || att->keys)
		return 0;
	r = regions_attach(att);
	if (r < 0) {
		clt_mem_why(att, r, why, len);
		clt_mem_detach(att);
	}
	return r;
}

void clt_mem_detach(struct clt_attempt *att)
{
	clt_key_keep_stats(att, att->keys);
	frwr_pool_destroy(att->keys);
	att->keys = NULL;
	fab_dereg_mr(att->all_mr);
	att->all_mr = NULL;
	if (!att->mrs)
		return;
	for (unsigned i = 0; i < att->io->arena.n && att->mrs[i]; i++)
		fab_dereg_mr(att->mrs[i]);
	free(att->mrs);
	att->mrs = NULL;
	fab_dereg_mr(att->slots_mr);
	att->slots_mr = NULL;
}
