/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a server's chunk, with type 1: armed, written, revoked, read, armed again. */
#include <errno.h>

#include "../unit/unit.h"
#include "rig.h"

struct chunk {
	struct rig *r;
	struct frwr *w;
	struct frwr_entry entry;
	struct frwr_handle h;
	bool io;			/* the storage has it */
	int rc;
};

static void revoked(void *arg, int rc)
{
	struct chunk *k = arg;

	k->rc = rc;
	k->io = rc == 0;
}

/* A request for @k has come on connection @c.  Not 0: the client uses a chunk that is in use. */
static int request(struct chunk *k, unsigned c)
{
	int rc = frwr_fill_unmap(&k->entry, &k->r->c[c]->fab, k->w, revoked, k);

	return rc ? rc : rig_post(k->r, c, &k->entry);
}

/* The bind is in one entry with the message that tells the key. */
static void answer(struct chunk *k, unsigned c)
{
	struct ibv_send_wr data = *rig_req(k->r, false), imm = data, *first;
	struct frwr *w = k->w;
	int rc;

	k->io = false;
	data.opcode = IBV_WR_RDMA_WRITE;
	imm.opcode = IBV_WR_SEND_WITH_IMM;
	cr_assert_eq(frwr_map(w, k->r->mr[w->index], rig_addr(k->r, w->index), RIG_SLOT,
			      FRWR_PEER_WRITES, &k->h), 0);
	cr_assert_eq(frwr_fill_send(&k->entry, &k->r->c[c]->fab, w, NULL, NULL), 0);
	/* [WRITE data, BIND, SEND_IMM] */
	first = &data;
	data.next = k->entry.first;
	k->entry.last->next = &imm;
	imm.next = NULL;
	rc = fab_post_send(&k->r->c[c]->fab, first);
	k->entry.posted(&k->entry, rc);
	cr_assert_eq(rc, 0);
}

Test(frwr_server, t14_a_chunk)
{
	struct frwr_handle first;
	struct frwr_stats s;
	struct chunk k = { 0 };
	struct rig r;

	rig_open(&r, FRWR_MW1);
	k.r = &r;
	k.w = rig_at(&r, 0);
	k.h = first = rig_valid(&r, 0, 0);
	for (unsigned i = 0; i < 200; i++) {
		unsigned c = i % 2;
		uint32_t key = k.h.rkey;

		/* On whichever connection the client likes. */
		cr_assert(mock_peer_write(r.c[0], key, k.h.addr, RIG_SLOT));
		cr_assert(mock_peer_write(r.c[1], key, k.h.addr, RIG_SLOT));
		r.c[c]->hold = true;
		cr_assert_eq(request(&k, c), 0);
		mock_dispatch(r.c[c]);
		cr_assert(!k.io, "not before the revoke is known to be done");
		cr_assert(mock_peer_write(r.c[0], key, k.h.addr, 1));
		r.c[c]->hold = false;
		mock_dispatch(r.c[c]);
		cr_assert(k.io);
		for (unsigned d = 0; d < 2; d++) {
			cr_assert(!mock_peer_write(r.c[d], key, k.h.addr, 1));
			cr_assert(!mock_peer_write(r.c[d], k.w->mw->rkey, k.h.addr, 1));
		}
		r.c[c]->nlog = 0;
		answer(&k, c);
		cr_assert_str_eq(mock_log(r.c[c]), "WRITE BIND SEND_IMM");
		cr_assert_eq(k.h.rkey & 0xff, (key + 2) & 0xff, "two keys for each IO");
		mock_dispatch(r.c[c]);
	}
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.mapped, 201);
	cr_assert_eq(s.local_inv, 200);
	cr_assert_geq(s.key_wraps, 1);
	rig_close(&r);
}

/* The client uses a chunk again before it was answered: that costs it the path, in every stage. */
Test(frwr_server, t14_a_chunk_in_use)
{
	struct chunk k = { 0 }, again;
	struct rig r;

	rig_open(&r, FRWR_MW1);
	k.r = &r;
	k.w = rig_at(&r, 0);
	rig_valid(&r, 0, 0);
	r.c[0]->hold = true;
	again = k;
	cr_assert_eq(request(&k, 0), 0);
	cr_assert_eq(request(&again, 1), -EALREADY, "is being revoked");
	r.c[0]->hold = false;
	mock_dispatch(r.c[0]);
	cr_assert(k.io);
	cr_assert_eq(request(&again, 1), -EALREADY, "is in the storage");
	cr_assert_eq(r.c[1]->nposts, 0);
	/* And when the path goes down in the middle the storage is not begun. */
	answer(&k, 0);
	r.c[0]->hold = true;
	cr_assert_eq(request(&k, 0), 0);
	mock_conn_break(r.c[0], 0);
	mock_dispatch(r.c[0]);
	cr_assert(!k.io);
	cr_assert_eq(k.rc, -ENOTCONN);
	rig_close(&r);
}

/* All chunks are armed in one post before the client is told of any. */
Test(frwr_server, t14_all_are_armed_at_once)
{
	struct ibv_send_wr *info;
	struct frwr_handle h[RIG_SLOTS];
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_MW1);
	info = rig_req(&r, true);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		cr_assert_eq(rig_map(&r, i, &h[i]), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_list(&r, 0, RIG_SLOTS - 1), info, info),
		     0);
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.nreq, 1);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		cr_assert(mock_peer_write(r.c[1], h[i].rkey, h[i].addr, h[i].len));
	rig_close(&r);
}
