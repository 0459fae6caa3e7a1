/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking keys away: by us, by the peer, never by both. */
#include <errno.h>
#include <pthread.h>

#include "../unit/unit.h"
#include "log.h"
#include "rig.h"

static int unmap(struct rig *r, unsigned c, struct frwr *w, struct frwr_entry *e)
{
	return frwr_fill_unmap(e, &r->c[c]->fab, w, rig_done, r);
}

Test(frwr_unmap, t06_r24_r25_r26_r29_each_tells_for_itself)
{
	struct frwr_handle h;
	struct frwr_entry e[3];
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	for (unsigned i = 0; i < 3; i++)
		h = rig_valid(&r, 0, i);
	r.c[0]->nlog = 0;
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(unmap(&r, 0, rig_at(&r, i), &e[i]), 0);
		cr_assert_eq(rig_post(&r, 0, &e[i]), 0);
	}
	cr_assert_str_eq(mock_log(r.c[0]), "LINV* LINV* LINV*");
	cr_assert(!mock_peer_write(r.c[0], h.rkey, h.addr, 1));
	/* The device has done it, and nobody has told us: no reuse. */
	cr_assert_eq(r.ndone, 0, "not from inside the post");
	for (unsigned i = 0; i < 3; i++) {
		struct fab_cqe *cqe;

		cr_assert_eq(fab_poll(&r.c[0]->fab, &wc, 1), 1);
		cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_INVALIDATING);
		cr_assert_eq(rig_map(&r, i, &h), -EBUSY);
		cqe = (struct fab_cqe *)(uintptr_t)wc.wr_id;
		cqe->done(&r.c[0]->fab, cqe, &wc);
		cr_assert_eq(r.ndone, i + 1);
		cr_assert_eq(r.done_rc, 0);
		cr_assert_eq(rig_map(&r, i, &h), 0);
	}
	rig_close(&r);
	cr_assert_eq(r.ndone, 3);
}

Test(frwr_unmap, t06_r41_twice_is_already)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1 };

	for_each_case(mode, modes) {
		struct frwr_entry e, f;
		struct rig r;

		rig_open(&r, *mode);
		cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &e), -EALREADY, "never mapped");
		rig_valid(&r, 0, 0);
		cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &e), 0);
		cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &f), -EALREADY, "filled in");
		cr_assert_eq(rig_post(&r, 0, &e), 0);
		cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &f), -EALREADY, "posted");
		mock_dispatch(r.c[0]);
		cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &f), -EALREADY, "done");
		cr_assert_eq(r.ndone, 1);
		rig_close(&r);
	}
}

Test(frwr_unmap, r30_states_that_cannot_be_unmapped)
{
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e, f;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, false);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &e), -EINVAL, "MAPPED: reset");
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, req), 0);
	cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &f), -EBUSY, "posted() has not run");
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	cr_assert_eq(unmap(&r, 1, rig_at(&r, 0), &f), -EINVAL, "on another connection");
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_VALID);
	frwr_pool_kill(r.pool);
	cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &f), -ENOTCONN);
	cr_assert_eq(rig_map(&r, 0, &h), -ENOTCONN);
	cr_assert_eq(rig_map(&r, 5, &h), -ENOTCONN);
	rig_close(&r);
}

/* ---- the peer's ---- */

Test(frwr_reminv, t08_r27_hit)
{
	struct frwr_handle h;
	struct frwr_stats s;
	struct frwr_entry e;
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	for (unsigned i = 0; i < RIG_SLOTS; i++) {
		h = rig_valid(&r, 0, i);
		wc = mock_peer_inv(r.c[0], h.rkey);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), rig_at(&r, i));
		cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_FREE);
		cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), NULL, "twice");
		cr_assert_eq(unmap(&r, 0, rig_at(&r, i), &e), -EALREADY);
	}
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.remote_inv, RIG_SLOTS);
	cr_assert_eq(s.local_inv, 0);
	cr_assert_eq(s.quirk_inv_flag, 0);
	/* Free at once for another connection. */
	rig_valid(&r, 1, 0);
	rig_close(&r);
}

/* What the peer did is not done again. */
Test(frwr_reminv, r27_the_rest_is_ours)
{
	struct frwr_handle h;
	struct frwr_entry e[3];
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	rig_valid(&r, 0, 0);
	h = rig_valid(&r, 0, 1);
	rig_valid(&r, 0, 2);
	wc = mock_peer_inv(r.c[0], h.rkey);
	cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), rig_at(&r, 1));
	r.c[0]->nlog = 0;
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(unmap(&r, 0, rig_at(&r, i), &e[i]), i == 1 ? -EALREADY : 0);
		if (i != 1)
			cr_assert_eq(rig_post(&r, 0, &e[i]), 0);
	}
	cr_assert_str_eq(mock_log(r.c[0]), "LINV* LINV*");
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.ndone, 2);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_FREE);
	rig_close(&r);
}

Test(frwr_reminv, t08_q3_miss_and_flags)
{
	struct frwr_handle h, other;
	struct frwr_stats s;
	struct ibv_wc wc = { .opcode = IBV_WC_RECV };
	struct rig r;

	rig_open(&r, FRWR_MW2);
	h = rig_valid(&r, 0, 0);
	other = rig_valid(&r, 1, 1);
	const struct {
		unsigned flags;
		uint32_t rkey;
		enum ibv_wc_opcode opcode;
		enum ibv_wc_status status;
		bool hit;
	} cases[] = {
		{ IBV_WC_WITH_INV, ibv_inc_rkey(h.rkey), IBV_WC_RECV, 0, false },
		{ IBV_WC_WITH_INV, h.rkey + 0x100, IBV_WC_RECV, 0, false },
		{ IBV_WC_WITH_INV, 0, IBV_WC_RECV, 0, false },
		{ IBV_WC_WITH_INV, UINT32_MAX, IBV_WC_RECV, 0, false },
		{ IBV_WC_WITH_INV, other.rkey, IBV_WC_RECV, 0, false },	/* bound elsewhere */
		{ IBV_WC_WITH_INV, h.rkey, IBV_WC_RECV_RDMA_WITH_IMM, 0, false },
		{ IBV_WC_WITH_INV, h.rkey, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, false },
		{ 0, h.rkey, IBV_WC_RECV, 0, false },
		{ IBV_WC_WITH_IMM, h.rkey, IBV_WC_RECV, 0, false },
		/* soft-RoCE tells of an invalidate with another flag, that could mean other
		 * things */
		{ IBV_WC_IP_CSUM_OK | IBV_WC_WITH_IMM, h.rkey, IBV_WC_RECV, 0, false },
		{ IBV_WC_IP_CSUM_OK, other.rkey, IBV_WC_RECV, 0, false },
		{ IBV_WC_IP_CSUM_OK, h.rkey, IBV_WC_RECV, 0, true },
	};
	for_each_case(c, cases) {
		wc.wc_flags = c->flags;
		wc.invalidated_rkey = c->rkey;
		wc.opcode = c->opcode;
		wc.status = c->status;
		cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc) == rig_at(&r, 0), c->hit,
			     "case %d", (int)(c - cases));
		cr_assert_eq(frwr_state(rig_at(&r, 0)), c->hit ? FRWR_FREE : FRWR_VALID);
		cr_assert_eq(frwr_state(rig_at(&r, 1)), FRWR_VALID);
	}
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.quirk_inv_flag, 1);
	cr_assert_eq(s.remote_inv, 1);
	rig_close(&r);
}

/* Keys of the other modes are not the peer's to invalidate. */
Test(frwr_reminv, t08_other_modes)
{
	static const enum frwr_mode modes[] = { FRWR_MW1, FRWR_REREG, FRWR_STATIC };

	for_each_case(mode, modes) {
		struct ibv_wc wc = { .opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_INV };
		struct rig r;

		rig_open(&r, *mode);
		wc.invalidated_rkey = rig_valid(&r, 0, 0).rkey;
		cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), NULL);
		cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_VALID);
		cr_assert_eq(frwr_expect_reminv(rig_at(&r, 0)), -EOPNOTSUPP);
		rig_close(&r);
	}
}

/* @how: what the peer does with a key that it was asked to invalidate. */
enum peer { PEER_DOES, PEER_DOES_NOT, PEER_LIES };

static void asked(enum peer how)
{
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct frwr_stats s;
	struct ibv_wc wc;
	struct frwr *w;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, false);
	w = rig_at(&r, 0);
	cr_assert_eq(frwr_expect_reminv(w), -EINVAL, "FREE");
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(frwr_expect_reminv(w), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, w, req, req), 0);
	cr_assert_eq(frwr_expect_reminv(w), -EINVAL, "too late");
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	cr_assert_eq(frwr_state(w), FRWR_VALID);
	/* Both of us now would be the end of the machine. */
	cr_assert_eq(unmap(&r, 0, w, &e), -EBUSY);
	if (how == PEER_DOES) {
		wc = mock_peer_inv(r.c[0], h.rkey);
		cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), w);
		cr_assert_eq(unmap(&r, 0, w, &e), -EALREADY);
	}
	cr_assert_eq(frwr_answered(w, how != PEER_DOES_NOT), how == PEER_LIES ? -EPROTO : 0);
	if (how == PEER_DOES_NOT) {
		cr_assert_eq(unmap(&r, 0, w, &e), 0);
		cr_assert_eq(rig_post(&r, 0, &e), 0);
		mock_dispatch(r.c[0]);
		cr_assert_eq(r.ndone, 1);
	}
	if (how == PEER_LIES)
		cr_assert_eq(unmap(&r, 0, w, &e), -EBUSY, "it may still come");
	else
		cr_assert_eq(rig_map(&r, 0, &h), 0);
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.remote_inv, how == PEER_DOES);
	cr_assert_eq(s.local_inv, how == PEER_DOES_NOT);
	cr_assert_eq(s.remote_inv_missing, how == PEER_LIES);
	rig_close(&r);
}

Test(frwr_reminv, t09_asked_and_done) { asked(PEER_DOES); }
Test(frwr_reminv, t09_asked_and_forgotten) { asked(PEER_DOES_NOT); }
Test(frwr_reminv, t09_said_and_not_done) { asked(PEER_LIES); }

/* The peer was faster than posted(): its answer is there while the poster has yet to tell. */
Test(frwr_reminv, r35_answer_before_posted)
{
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct ibv_wc wc;
	struct frwr *w;
	struct rig r;
	int rc;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, false);
	w = rig_at(&r, 0);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(frwr_expect_reminv(w), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, w, req, req), 0);
	rc = fab_post_send(&r.c[0]->fab, e.first);
	cr_assert_eq(rc, 0);
	wc = mock_peer_inv(r.c[0], h.rkey);
	cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), w);
	cr_assert_eq(frwr_answered(w, true), 0);
	cr_assert_eq(frwr_state(w), FRWR_FREE);
	cr_assert_eq(rig_map(&r, 0, &h), -EBUSY, "ibv_mw.rkey is not what was bound last");
	e.posted(&e, rc);
	cr_assert_eq(frwr_state(w), FRWR_FREE);
	rig_valid(&r, 1, 0);
	rig_close(&r);
}

/* It has guessed the key of what was never posted: the window is as good as before. */
Test(frwr_reminv, r35_guessed_before_not_posted)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_INV };
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct frwr *w;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, false);
	w = rig_at(&r, 0);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, w, req, req), 0);
	wc.invalidated_rkey = h.rkey;
	cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), w);
	cr_assert_eq(rig_map(&r, 0, &h), -EBUSY);
	e.posted(&e, -ENOTCONN);
	cr_assert_eq(frwr_state(w), FRWR_FREE);
	rig_valid(&r, 0, 0);
	rig_close(&r);
}

/* The same of an unmap: done() when both have happened, and once. */
Test(frwr_unmap, r29_completion_before_posted)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1 };

	for_each_case(mode, modes) {
		for (int flushed = 0; flushed < 2; flushed++) {
			struct frwr_handle h;
			struct frwr_entry e;
			struct rig r;
			int rc;

			rig_open(&r, *mode);
			rig_valid(&r, 0, 0);
			mock_dispatch(r.c[0]);
			cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &e), 0);
			r.c[0]->hold = flushed;
			rc = fab_post_send(&r.c[0]->fab, e.first);
			cr_assert_eq(rc, 0);
			if (flushed)
				mock_conn_break(r.c[0], 0);
			mock_dispatch(r.c[0]);
			cr_assert_eq(r.ndone, 0);
			cr_assert_eq(rig_map(&r, 0, &h), flushed ? -ENOTCONN : -EBUSY);
			e.posted(&e, rc);
			cr_assert_eq(r.ndone, 1);
			cr_assert_eq(r.done_rc, flushed ? -ENOTCONN : 0);
			cr_assert_eq(frwr_state(rig_at(&r, 0)),
				     flushed ? FRWR_DEAD : FRWR_FREE);
			if (!flushed)
				rig_valid(&r, 0, 0);
			rig_close(&r);
			cr_assert_eq(r.ndone, 1);
		}
	}
}

/* A teardown that comes in between calls done(), and nobody does again. */
Test(frwr_unmap, r29_kill_before_posted)
{
	struct frwr_entry e;
	struct rig r;
	int rc;

	rig_open(&r, FRWR_MW2);
	rig_valid(&r, 0, 0);
	cr_assert_eq(unmap(&r, 0, rig_at(&r, 0), &e), 0);
	rc = fab_post_send(&r.c[0]->fab, e.first);
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.ndone, 0);
	frwr_pool_kill(r.pool);
	cr_assert_eq(r.ndone, 1);
	cr_assert_eq(r.done_rc, -ENOTCONN);
	e.posted(&e, rc);
	cr_assert_eq(r.ndone, 1);
	rig_close(&r);
}
