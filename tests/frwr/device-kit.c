/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what a case has on its connections; see device.h.  One thread. */
#include <endian.h>
#include <string.h>

#include "device.h"
#include "util.h"

static const struct fab_qp_attr attr = { .max_send_wr = 128, .max_recv_wr = 128,
					 .max_send_sge = 2 };

#define RECVS 64u

/* Slots side by side, as in an arena, and a region for each: frwr.h says why. */
static void make_slots(struct kit *k, enum frwr_mode mode)
{
	int access = mode == FRWR_STATIC ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE :
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

	k->arena = calloc(SLOTS, SLOT);
	k->before = calloc(SLOTS, SLOT);
	k->entry = calloc(SLOTS, sizeof(*k->entry));
	check(k->arena && k->before && k->entry);
	for (unsigned i = 0; i < SLOTS && mode != FRWR_REREG; i++) {
		k->mr[i] = fab_reg_mr(k->us->pd, k->arena + i * SLOT, SLOT, access);
		check(k->mr[i] != NULL);
	}
}

static void connect_both(struct kit *k)
{
	struct pair p;

	pair_connect(k->w, &p, &attr);
	k->us = p.a;
	k->peer = p.b;
	k->us->dispatches = k->peer->dispatches = true;
	watch_device(k->us->conn);
}

static bool usable(struct kit *k, enum frwr_mode mode)
{
	check_eq(frwr_query(k->us->conn, k->us->pd, &k->caps), 0);
	if (!k->caps.rc[mode])
		return true;
	printf("  SKIPPED: %s: %s\n", frwr_mode_name(mode), k->caps.why[mode]);
	check(!provider_windows);
	return false;
}

bool kit_open(struct world *w, struct kit *k, enum frwr_mode mode)
{
	return kit_open_recvs(w, k, mode, RECVS);
}

bool kit_open_recvs(struct world *w, struct kit *k, enum frwr_mode mode, unsigned recvs)
{
	memset(k, 0, sizeof(*k));
	k->w = w;
	connect_both(k);
	if (!usable(k, mode)) {
		end_close(k->us);
		end_close(k->peer);
		return false;
	}
	/* ORDER: connections, regions, windows. */
	make_slots(k, mode);
	k->src = region_create(k->peer->pd, SLOTS * SLOT, 0);
	check_eq(frwr_pool_create(&k->pool, k->us->pd, mode, SLOTS), 0);
	check_eq(post_recvs(k->us, 0, RECVS), 0);
	check_eq(post_recvs(k->peer, 0, recvs), 0);
	return true;
}

void kit_close(struct kit *k)
{
	fab_disconnect(k->us->conn);
	fab_disconnect(k->peer->conn);
	world_until(k->w, k->us->drained && k->peer->drained);
	/* ORDER: drained, windows, regions, connections. */
	frwr_pool_kill(k->pool);
	for (unsigned i = 0; i < SLOTS; i++)
		check(frwr_state(kit_at(k, i)) == FRWR_DEAD);
	check_eq(frwr_pool_destroy(k->pool), 0);
	for (unsigned i = 0; i < SLOTS; i++)
		fab_dereg_mr(k->mr[i]);
	region_destroy(&k->src);
	end_free(k->us);
	end_free(k->peer);
	free(k->arena);
	free(k->before);
	free(k->entry);
}

void kit_reconnect(struct kit *k)
{
	enum frwr_mode mode = k->pool->mode;
	struct world *w = k->w;

	kit_close(k);
	check(kit_open(w, k, mode));
}

void kit_second(struct kit *k, struct end **us2, struct end **peer2)
{
	k->w->request = NULL;
	*us2 = end_active(k->w, &k->w->addr, NULL);
	end_create_qp(*us2, k->us->pd, &attr);
	check_eq(post_recvs(*us2, 0, RECVS), 0);
	check_eq(fab_connect((*us2)->conn, NULL, 0), 0);
	world_until(k->w, k->w->request);
	*peer2 = k->w->request;
	end_create_qp(*peer2, k->peer->pd, &attr);
	check_eq(post_recvs(*peer2, 0, RECVS), 0);
	check_eq(end_accept(*peer2, NULL, 0), 0);
	world_until(k->w, (*us2)->established && (*peer2)->established);
	(*us2)->dispatches = (*peer2)->dispatches = true;
}

/* ---- ours ---- */

struct frwr *kit_list(struct kit *k, unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++)
		kit_at(k, i)->next = i < last ? kit_at(k, i + 1) : NULL;
	return kit_at(k, first);
}

void kit_map(struct kit *k, unsigned i, uint32_t len, enum frwr_dir dir)
{
	uint32_t old = k->h[i].rkey;

	check_eq(frwr_map(kit_at(k, i), k->mr[i], (uintptr_t)k->arena + i * SLOT, len, dir,
			  &k->h[i]), 0);
	check(k->h[i].rkey != old);
}

int kit_post(struct end *e, struct frwr_entry *entry)
{
	int rc = fab_post_send(e->conn, entry->first);

	entry->posted(entry, rc);
	return rc;
}

void kit_tell(struct kit *k, unsigned i)
{
	struct ibv_send_wr wr = wr_send(i, NULL);
	struct ibv_wc wc;

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(i);
	check_eq(frwr_fill_send(&k->entry[i], k->us->conn, kit_list(k, i, i), &wr, &wr), 0);
	check_eq(kit_post(k->us, &k->entry[i]), 0);
	wc = kit_recv(k, k->peer);
	check_eq(wc.status, IBV_WC_SUCCESS);
	check_eq(be32toh(wc.imm_data), i);
	check_eq(frwr_state(kit_at(k, i)), FRWR_VALID);
}

void kit_bind(struct kit *k, unsigned i)
{
	kit_map(k, i, SLOT, FRWR_PEER_WRITES);
	kit_tell(k, i);
}

void kit_done(void *kit, int rc)
{
	struct kit *k = kit;

	k->ndone++;
	k->done_rc = rc;
}

int kit_unmap(struct kit *k, unsigned i)
{
	unsigned n = k->ndone;
	int rc;

	kit_at(k, i)->next = NULL;
	rc = frwr_fill_unmap(&k->entry[i], k->us->conn, kit_at(k, i), kit_done, k);
	if (rc)
		return rc;
	check_eq(kit_post(k->us, &k->entry[i]), 0);
	world_until(k->w, k->ndone == n + 1);
	check_eq(k->done_rc, 0);
	check_eq(frwr_state(kit_at(k, i)), FRWR_FREE);
	return 0;
}

struct ibv_wc kit_recv(struct kit *k, struct end *e)
{
	struct ibv_wc wc;

	world_until(k->w, e->nrecvs > 0);
	wc = e->recvs[0].wc;
	memmove(e->recvs, e->recvs + 1, --e->nrecvs * sizeof(e->recvs[0]));
	if (wc.status == IBV_WC_SUCCESS)
		check_eq(post_recvs(e, 0, 1), 0);
	return wc;
}

/* ---- the peer's ---- */

void kit_write(struct kit *k, uint32_t rkey, unsigned i, size_t off, size_t len, uint8_t byte)
{
	struct ibv_sge sge = region_sge(&k->src, 0, len);
	struct ibv_send_wr wr = wr_write_imm(0, &sge, (uintptr_t)k->arena + i * SLOT + off, rkey,
					     byte);

	memset(k->src.mem, byte, len);
	check_eq(post(k->peer, &wr, 1), 0);
}

void kit_wrote(struct kit *k, unsigned i, size_t off, size_t len, uint8_t byte)
{
	struct ibv_wc wc = kit_recv(k, k->us);

	check_eq(wc.status, IBV_WC_SUCCESS);
	check_eq(be32toh(wc.imm_data), byte);
	for (size_t at = off; at < off + len; at++)
		check_eq(k->arena[i * SLOT + at], byte);
}

void kit_remember(struct kit *k)
{
	memcpy(k->before, k->arena, SLOTS * SLOT);
}

void kit_refused(struct kit *k)
{
	world_until(k->w, k->us->drained && k->peer->drained);
	for (unsigned i = 0; i < k->us->nrecvs; i++)
		check(k->us->recvs[i].wc.status != IBV_WC_SUCCESS);
	check(memcmp(k->before, k->arena, SLOTS * SLOT) == 0);
}

void kit_stale(struct kit *k, uint32_t rkey, unsigned i)
{
	kit_remember(k);
	kit_write(k, rkey, i, 0, SLOT, 0xee);
	kit_refused(k);
}
