/* SPDX-License-Identifier: BSD-3-Clause */
/* Mapping and sending: keys, ranges, rights, chains. */
#include <errno.h>

#include "../unit/unit.h"
#include "rig.h"

Test(frwr_map, t01_r15_each_map_has_another_key)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1, FRWR_REREG };

	for_each_case(mode, modes) {
		struct frwr_handle h, last = { 0 };
		struct frwr_entry e;
		struct frwr_stats s;
		struct rig r;
		int rc;

		rig_open(&r, *mode);
		for (unsigned i = 0; i < 600; i++) {
			h = rig_valid(&r, 0, 3);
			cr_assert_neq(h.rkey, last.rkey);
			cr_assert(i == 0 || h.rkey >> 8 == last.rkey >> 8);
			cr_assert(mock_peer_write(r.c[0], h.rkey, h.addr, h.len));
			cr_assert(!mock_peer_write(r.c[0], last.rkey, h.addr, h.len));
			rc = frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 3), rig_done, &r);
			cr_assert_eq(rc, *mode == FRWR_REREG);
			if (rc == 0)
				cr_assert_eq(rig_post(&r, 0, &e), 0);
			mock_dispatch(r.c[0]);
			cr_assert_eq(frwr_state(rig_at(&r, 3)), FRWR_FREE);
			cr_assert(!mock_peer_write(r.c[0], h.rkey, h.addr, h.len));
			last = h;
		}
		frwr_stats(r.pool, &s);
		cr_assert_geq(s.key_wraps, *mode == FRWR_MW1 ? 4 : 2, "%d: %d", *mode,
			      (int)s.key_wraps);
		rig_close(&r);
	}
}

/* ibv_mw.rkey is told once per post, and not of a post that took nothing. */
Test(frwr_map, t01_rkey_follows_the_post)
{
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct frwr *w;
	struct rig r;
	uint32_t before;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, true);
	w = rig_at(&r, 0);
	before = w->mw->rkey;
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(w->mw->rkey, before);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, w, req, req), 0);
	cr_assert_eq(w->mw->rkey, before);
	e.posted(&e, -ENOTCONN);
	cr_assert_eq(w->mw->rkey, before, "not consumed");
	cr_assert_eq(frwr_state(w), FRWR_FREE);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(h.rkey, ibv_inc_rkey(before));
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, w, req, req), 0);
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	cr_assert_eq(w->mw->rkey, h.rkey);
	rig_close(&r);
}

struct range_case {
	const char *what;
	int64_t off;
	uint64_t len;
	int rc;
};

static const struct range_case ranges[] = {
	{ "all", 0, RIG_SLOT, 0 },
	{ "the last byte", RIG_SLOT - 1, 1, 0 },
	{ "nothing", 0, 0, -EINVAL },
	{ "one byte in front", -1, 16, -EINVAL },
	{ "one byte behind", RIG_SLOT - 15, 16, -EINVAL },
	{ "right behind", RIG_SLOT, 1, -EINVAL },
	{ "longer", 0, RIG_SLOT + 1, -EINVAL },
	{ "around it", -1, RIG_SLOT + 2, -EINVAL },
	{ "far away", INT64_MIN, 16, -EINVAL },
	{ "more than 2 GiB", 0, (1ull << 31) + 1, -EINVAL },
	{ "all that 32 bits say", 0, UINT32_MAX, -EINVAL },
};

/* r14: and what was refused leaves window and slot as they were. */
Test(frwr_map, t02_r13_r14_ranges)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1, FRWR_REREG, FRWR_STATIC };

	for_each_case(mode, modes) {
		struct rig r;

		rig_open(&r, *mode);
		for_each_case(c, ranges) {
			struct frwr_handle h = { .rkey = 77 };
			struct frwr *w = rig_at(&r, 2);

			cr_assert_eq(frwr_map(w, r.mr[2], rig_addr(&r, 2) + (uint64_t)c->off,
					      (uint32_t)c->len, FRWR_PEER_WRITES, &h),
				     c->rc, "%s: %s", frwr_mode_name(*mode), c->what);
			cr_assert_eq(frwr_state(w), c->rc ? FRWR_FREE : FRWR_MAPPED);
			cr_assert(c->rc == 0 || h.rkey == 77);
			cr_assert_eq(frwr_map_end(w), 0);
			cr_assert_eq(r.c[0]->nposts, 0);
		}
		rig_close(&r);
	}
}

/* With a region that is longer, and with memory that no region is asked for. */
Test(frwr_map, t02_r13_long_and_far)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1, FRWR_REREG };
	void *far = (void *)(uintptr_t)0x100000000000;

	for_each_case(mode, modes) {
		struct frwr_handle h;
		struct ibv_mr *mr;
		struct rig r;

		rig_open(&r, *mode);
		mr = fab_reg_mr(r.pd, far, 1ull << 33, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		cr_assert_eq(frwr_map(rig_at(&r, 0), mr, (uintptr_t)far, 1u << 31, FRWR_PEER_WRITES,
				      &h), 0);
		cr_assert_eq(frwr_map(rig_at(&r, 1), mr, (uintptr_t)far, (1u << 31) + 1,
				      FRWR_PEER_WRITES, &h), -EINVAL);
		cr_assert_eq(frwr_map(rig_at(&r, 1), *mode == FRWR_REREG ? NULL : mr,
				      UINT64_MAX - 3, 8, FRWR_PEER_WRITES, &h),
			     -EINVAL);
		cr_assert_eq(frwr_state(rig_at(&r, 1)), FRWR_FREE);
		fab_dereg_mr(mr);
		rig_close(&r);
	}
}

/* A device would only say so by the end of the connection. */
Test(frwr_map, t02_r13_rights_are_asked_for_before_the_post)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	const struct {
		enum frwr_mode mode;
		int access;
		enum frwr_dir dir;
		int rc;
	} cases[] = {
		{ FRWR_MW2, all, FRWR_PEER_WRITES, 0 },
		{ FRWR_MW2, IBV_ACCESS_LOCAL_WRITE, FRWR_PEER_WRITES, -EINVAL },
		{ FRWR_MW2, IBV_ACCESS_MW_BIND, FRWR_PEER_WRITES, -EINVAL },
		{ FRWR_MW2, IBV_ACCESS_MW_BIND, FRWR_PEER_READS, 0 },
		{ FRWR_MW1, IBV_ACCESS_LOCAL_WRITE, FRWR_PEER_WRITES, -EINVAL },
		{ FRWR_STATIC, all, FRWR_PEER_WRITES, -EINVAL },
		{ FRWR_STATIC, all | IBV_ACCESS_REMOTE_WRITE, FRWR_PEER_WRITES, 0 },
		{ FRWR_STATIC, all | IBV_ACCESS_REMOTE_WRITE, FRWR_PEER_READS, -EINVAL },
		{ FRWR_STATIC, all | IBV_ACCESS_REMOTE_READ, FRWR_PEER_READS, 0 },
	};

	for_each_case(c, cases) {
		struct frwr_handle h;
		struct rig r;

		mock_init();
		rig_open_access(&r, c->mode, c->access);
		cr_assert_eq(frwr_map(rig_at(&r, 0), r.mr[0], rig_addr(&r, 0), 64, c->dir, &h),
			     c->rc, "case %d", (int)(c - cases));
		cr_assert_eq(frwr_map(rig_at(&r, 1), NULL, rig_addr(&r, 0), 64, c->dir, &h),
			     -EINVAL);
		rig_close(&r);
	}
}

Test(frwr_map, t02_another_pd)
{
	struct fab_pd *pd;
	struct ibv_mr *mr;
	struct frwr_handle h;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	pd = mock_pd_create();
	mr = fab_reg_mr(pd, r.mem, RIG_SLOT, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	cr_assert_eq(frwr_map(rig_at(&r, 0), mr, rig_addr(&r, 0), 64, FRWR_PEER_WRITES, &h),
		     -EINVAL);
	fab_dereg_mr(mr);
	mock.npd--;
	free(pd);
	rig_close(&r);
}

/* What the peer reads it cannot write, and the other way round. */
Test(frwr_map, t02_r16_access_by_direction)
{
	for (int mode = FRWR_MW2; mode <= FRWR_REREG; mode++) {
		for (int dir = 0; dir < 2; dir++) {
			struct frwr_handle h;
			struct frwr_entry e;
			struct rig r;

			rig_open(&r, (enum frwr_mode)mode);
			cr_assert_eq(frwr_map(rig_at(&r, 0), r.mr[0], rig_addr(&r, 0), 64,
					      (enum frwr_dir)dir, &h), 0);
			cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0),
						    rig_req(&r, true), &r.req), 0);
			cr_assert_eq(rig_post(&r, 0, &e), 0);
			cr_assert_eq(mock_peer_write(r.c[0], h.rkey, h.addr, 64),
				     dir == FRWR_PEER_WRITES);
			cr_assert_eq(mock_peer_read(r.c[0], h.rkey, h.addr, 64),
				     dir == FRWR_PEER_READS);
			rig_close(&r);
		}
	}
}

/* The peer reaches the range from 0 on, and by its address nothing. */
Test(frwr_map, zero_based)
{
	for (int mode = FRWR_MW2; mode <= FRWR_MW1; mode++) {
		struct frwr_handle h;
		struct frwr_entry e;
		struct rig r;

		rig_open(&r, (enum frwr_mode)mode);
		frwr_pool_zero_based(r.pool);
		cr_assert_eq(frwr_map(rig_at(&r, 0), r.mr[0], rig_addr(&r, 0) + 7, 64,
				      FRWR_PEER_WRITES, &h), 0);
		cr_assert(h.addr == 0 && h.len == 64);
		cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), rig_req(&r, true),
					    &r.req), 0);
		cr_assert_eq(e.first->bind_mw.bind_info.addr, rig_addr(&r, 0) + 7);
		cr_assert_eq(rig_post(&r, 0, &e), 0);
		cr_assert(mock_peer_write(r.c[0], h.rkey, 0, 64));
		cr_assert(!mock_peer_write(r.c[0], h.rkey, 1, 64));
		cr_assert(!mock_peer_write(r.c[0], h.rkey, rig_addr(&r, 0) + 7, 64));
		rig_close(&r);
	}
}

Test(frwr_send, t03_r18_r19_r20_binds_and_request_are_one_post)
{
	struct frwr_handle h[3];
	struct ibv_send_wr *req;
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, true);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(rig_map(&r, i, &h[i]), 0);
	cr_assert_eq(r.c[0]->nposts, 0, "map posts nothing");
	cr_assert(!mock_peer_write(r.c[0], h[0].rkey, h[0].addr, 1));
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_list(&r, 0, 2), req, req), 0);
	cr_assert_eq(e.last, req);
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	cr_assert_eq(r.c[0]->nposts, 1);
	cr_assert_str_eq(mock_log(r.c[0]), "BIND BIND BIND WRITE_IMM*");
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(r.c[0]->log[i].wr.bind_mw.rkey, h[i].rkey);
		cr_assert(mock_peer_write(r.c[0], h[i].rkey, h[i].addr, h[i].len));
		cr_assert(!mock_peer_write(r.c[1], h[i].rkey, h[i].addr, h[i].len));
	}
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.nreq, 1, "and nothing was heard of the binds");
	rig_close(&r);
}

/* Whatever stood in the memory of the request before; the mock refuses anything in a bind that is
 * not its own. */
Test(frwr_send, t03_requests_are_zero_where_nothing_is_said)
{
	struct frwr_entry e;
	struct frwr_handle h;
	struct frwr *w;
	struct rig r;

	rig_open(&r, FRWR_MW1);
	w = rig_at(&r, 0);
	memset(&w->wr, 0xff, sizeof(w->wr));
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, w, NULL, NULL), 0);
	cr_assert_eq(e.first, &w->wr);
	cr_assert_eq(e.last, &w->wr);
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	memset(&w->wr, 0xff, sizeof(w->wr));
	cr_assert_eq(frwr_fill_unmap(&e, &r.c[1]->fab, w, rig_done, &r), 0);
	cr_assert_eq(rig_post(&r, 1, &e), 0);
	cr_assert_str_eq(mock_log(r.c[1]), "UNBIND*");
	rig_close(&r);
}

Test(frwr_send, t03_what_cannot_be_filled)
{
	struct frwr_pool *other;
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, true);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, req), -EINVAL, "FREE");
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, NULL, req, req), -EINVAL);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(rig_map(&r, 0, &h), -EBUSY, "twice");
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_list(&r, 0, 1), req, req), -EINVAL,
		     "one of two");
	cr_assert_eq(frwr_pool_create(&other, r.pd, FRWR_MW2, 1), 0);
	cr_assert_eq(
		frwr_map(frwr_at(other, 0), r.mr[1], rig_addr(&r, 1), 64, FRWR_PEER_WRITES, &h), 0);
	rig_at(&r, 0)->next = frwr_at(other, 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, req), -EINVAL,
		     "two pools");
	cr_assert_eq(frwr_pool_destroy(other), 0);
	rig_at(&r, 0)->next = NULL;
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, NULL), -EINVAL);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, req), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, req), -EINVAL, "again");
	cr_assert_eq(rig_map(&r, 0, &h), -EBUSY);
	cr_assert_eq(frwr_map_end(rig_at(&r, 0)), -EBUSY);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_MAPPED, "what is filled in is not ended");
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	cr_assert_eq(rig_map(&r, 0, &h), -EBUSY, "VALID");
	rig_close(&r);
}

/* A request that could not be made after all: nothing was posted, and the window is there for the
 * next. */
Test(frwr_map, r37_end)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1, FRWR_REREG, FRWR_STATIC };

	for_each_case(mode, modes) {
		struct frwr_handle h;
		struct rig r;

		rig_open(&r, *mode);
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(rig_map(&r, i, &h), 0);
		cr_assert_eq(mock_peer_write(r.c[0], h.rkey, h.addr, 1),
			     *mode == FRWR_REREG || *mode == FRWR_STATIC);
		for (unsigned i = 0; i < 3; i++) {
			cr_assert_eq(frwr_map_end(rig_at(&r, i)), 0);
			cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_FREE);
			cr_assert_eq(frwr_map_end(rig_at(&r, i)), 0, "again");
		}
		cr_assert_eq(mock_peer_write(r.c[0], h.rkey, h.addr, 1), *mode == FRWR_STATIC);
		cr_assert_eq(r.c[0]->nposts, 0);
		rig_valid(&r, 0, 1);
		cr_assert_eq(frwr_map_end(rig_at(&r, 1)),
			     *mode == FRWR_REREG || *mode == FRWR_STATIC ? 0 : -EINVAL);
		rig_close(&r);
	}
}

/* One key for good, which works between map and map_end: of the range that it had first. */
Test(frwr_map, suspend)
{
	struct frwr_handle h, first;
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_SUSPEND);
	cr_assert_eq(rig_map(&r, 0, &first), 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(mock_peer_write(r.c[i % 2], first.rkey, first.addr, first.len));
		cr_assert_eq(rig_map(&r, 0, &h), -EBUSY);
		cr_assert_eq(frwr_map_end(rig_at(&r, 0)), 0);
		cr_assert(!mock_peer_write(r.c[i % 2], first.rkey, first.addr, 1));
		cr_assert_eq(frwr_map_end(rig_at(&r, 0)), 0, "again");
		cr_assert_eq(frwr_map(rig_at(&r, 0), r.mr[0], rig_addr(&r, 0), first.len - 1,
				      FRWR_PEER_WRITES, &h), -EINVAL);
		cr_assert_eq(frwr_map(rig_at(&r, 0), r.mr[0], rig_addr(&r, 0), first.len,
				      FRWR_PEER_READS, &h),
			     -EINVAL);
		cr_assert(!mock_peer_write(r.c[0], first.rkey, first.addr, 1));
		cr_assert_eq(rig_map(&r, 0, &h), 0);
		cr_assert(h.rkey == first.rkey && h.addr == first.addr && h.len == first.len);
	}
	cr_assert_eq(r.c[0]->nposts + r.c[1]->nposts, 0);
	/* Posted or not, what is filled in ends in the same way. */
	for (int rc = 0; rc >= -ENOTCONN; rc -= ENOTCONN) {
		cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), NULL, NULL), 0);
		cr_assert_null(e.first);
		e.posted(&e, rc);
		if (!rc)
			cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r),
				     1);
		cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_FREE);
		cr_assert(!mock_peer_write(r.c[0], first.rkey, first.addr, 1));
		cr_assert_eq(rig_map(&r, 0, &h), 0);
	}
	mock.suspend_fails = 1;
	cr_assert_eq(frwr_map_end(rig_at(&r, 0)), -EIO);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_DEAD, "nobody knows whether it is closed");
	cr_assert_eq(frwr_map_end(rig_at(&r, 0)), -ENOTCONN);
	rig_close(&r);
}

/* A bind that succeeded is not worth a call; if somebody signaled it all the same, nothing
 * happens. */
Test(frwr_send, r22_a_bind_is_silent_on_success)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_BIND_MW };
	struct rig r;

	rig_open(&r, FRWR_MW2);
	rig_valid(&r, 0, 0);
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.nreq, 0);
	rig_at(&r, 0)->bind_cqe.done(&r.c[0]->fab, &rig_at(&r, 0)->bind_cqe, &wc);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_VALID);
	rig_close(&r);
}

/* Nothing is allocated or registered between path up and path down. */
Test(frwr_map, r09_r10_r36_the_pool_is_complete_when_it_is_made)
{
	struct frwr_handle h;
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	cr_assert_eq(mock.mw_allocs, RIG_SLOTS);
	for (unsigned k = 0; k < 100; k++) {
		unsigned i = k % RIG_SLOTS;

		h = rig_valid(&r, k % 2, i);
		cr_assert_eq(frwr_fill_unmap(&e, &r.c[k % 2]->fab, rig_at(&r, i), rig_done, &r),
			     0);
		cr_assert_eq(rig_post(&r, k % 2, &e), 0);
		mock_dispatch(r.c[k % 2]);
	}
	cr_assert(!mock_peer_write(r.c[1], h.rkey, h.addr, 1));
	cr_assert_eq(r.ndone, 100);
	cr_assert_eq(mock.mw_allocs, RIG_SLOTS);
	cr_assert_eq(mock.nmr, RIG_SLOTS);
	/* A window is its slot's: no list to take it from. */
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		cr_assert_eq(rig_at(&r, i)->index, i);
	rig_close(&r);
}

Test(frwr_map, rereg_without_rereg_registers_anew)
{
	struct frwr_handle h, old;
	struct frwr_entry e;
	struct rig r;

	mock_init();
	rig_open_access(&r, FRWR_REREG, IBV_ACCESS_LOCAL_WRITE);
	old = rig_valid(&r, 0, 0);
	cr_assert_eq(mock.nmr, RIG_SLOTS + 1);
	cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r), 1);
	cr_assert_eq(r.ndone, 0, "who is told that it is done is not called");
	cr_assert_eq(mock.nmr, RIG_SLOTS);
	cr_assert(!mock_peer_write(r.c[0], old.rkey, old.addr, 1));
	/* Memory that nobody has registered is as good. */
	cr_assert_eq(frwr_map(rig_at(&r, 1), NULL, (uintptr_t)&r, 8, FRWR_PEER_WRITES, &h), 0);
	mock.reg_mr_fails = 1;
	cr_assert_eq(rig_map(&r, 0, &h), -ENOMEM);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_FREE);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	rig_close(&r);
}
