/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong, and in which order all ends. */
#include <errno.h>
#include <signal.h>

#include "../unit/unit.h"
#include "log.h"
#include "rig.h"

#define CHAIN 4u

/* A post that fails after @taken of a chain of binds and a request. */
static void fail_send(enum frwr_mode mode, unsigned taken, int rc)
{
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct frwr_stats s;
	struct rig r;

	rig_open(&r, mode);
	req = rig_req(&r, true);
	for (unsigned i = 0; i < CHAIN - 1; i++)
		cr_assert_eq(rig_map(&r, i, &h), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_list(&r, 0, CHAIN - 2), req, req), 0);
	r.c[0]->fail_at = taken;
	r.c[0]->fail_rc = rc;
	cr_assert_eq(rig_post(&r, 0, &e), rc);
	for (unsigned i = 0; i < CHAIN - 1; i++) {
		cr_assert_eq(frwr_state(rig_at(&r, i)), rc == -ENOTCONN ? FRWR_FREE : FRWR_DEAD);
		cr_assert_eq(rig_map(&r, i, &h), rc == -ENOTCONN ? 0 : -ENOTCONN);
	}
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.post_fail, 1);
	cr_assert_eq(s.partial_post, rc != -ENOTCONN);
	cr_assert_eq(s.bind_posted, 0);
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.nreq_failed, taken == CHAIN);
	rig_close(&r);
}

/* The fabric tells two things apart: nothing was taken (-ENOTCONN), or nobody knows how much. */
Test(frwr_fail, t10_r28_post_of_binds_fails_at_each_request)
{
	for (unsigned taken = 0; taken <= CHAIN; taken++) {
		fail_send(FRWR_MW2, taken, -ENOMEM);
		fail_send(FRWR_MW1, taken, -EINVAL);
	}
	fail_send(FRWR_MW2, 0, -ENOTCONN);
	fail_send(FRWR_MW1, 0, -ENOTCONN);
}

static void fail_unmap(enum frwr_mode mode, unsigned taken, int rc)
{
	struct frwr_entry e, f;
	struct frwr_stats s;
	struct rig r;

	rig_open(&r, mode);
	rig_valid(&r, 0, 0);
	cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r), 0);
	r.c[0]->fail_at = taken;
	r.c[0]->fail_rc = rc;
	cr_assert_eq(rig_post(&r, 0, &e), rc);
	cr_assert_eq(r.ndone, 0, "never from inside");
	cr_assert_eq(frwr_state(rig_at(&r, 0)), rc == -ENOTCONN ? FRWR_VALID : FRWR_DEAD);
	/* No invalidate after an error. */
	if (rc != -ENOTCONN)
		cr_assert_eq(frwr_fill_unmap(&f, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r),
			     -ENOTCONN);
	mock_conn_break(r.c[0], 0);
	mock_dispatch(r.c[0]);
	cr_assert_eq(r.ndone, 0, "what was flushed is not what was asked");
	frwr_pool_kill(r.pool);
	cr_assert_eq(r.ndone, 1);
	cr_assert_eq(r.done_rc, -ENOTCONN);
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.local_inv, 0);
	rig_close(&r);
	cr_assert_eq(r.ndone, 1);
}

Test(frwr_fail, t10_r28_r29_post_of_an_invalidate_fails)
{
	for (unsigned taken = 0; taken <= 1; taken++) {
		fail_unmap(FRWR_MW2, taken, -ENOMEM);
		fail_unmap(FRWR_MW1, taken, -EINVAL);
	}
	fail_unmap(FRWR_MW2, 0, -ENOTCONN);
	fail_unmap(FRWR_MW1, 0, -ENOTCONN);
}

/* On a path that is closed nothing is taken, and an entry that is not posted at all is told the
 * same. */
Test(frwr_fail, t10_r35_closed_path)
{
	struct ibv_send_wr *req;
	struct frwr_handle h;
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	req = rig_req(&r, true);
	rig_valid(&r, 0, 1);
	mock_conn_break(r.c[0], 0);
	mock_dispatch(r.c[0]);
	cr_assert(r.c[0]->drained);
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_at(&r, 0), req, req), 0);
	cr_assert_eq(rig_post(&r, 0, &e), -ENOTCONN);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_FREE);
	cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 1), rig_done, &r), -ENOTCONN,
		     "flushed with its bind, whatever it was");
	frwr_pool_kill(r.pool);
	cr_assert_eq(rig_map(&r, 2, &h), -ENOTCONN);
	rig_close(&r);
	cr_assert_eq(r.ndone, 0);
}

/* A bind that was carried out may be told as flushed: nobody knows, so it is dead. */
Test(frwr_fail, t11_r31_r32_flushed_binds)
{
	for (unsigned executed = 0; executed <= 3; executed++) {
		struct ibv_send_wr *req;
		struct frwr_handle h;
		struct frwr_entry e;
		struct frwr_stats s;
		struct rig r;

		rig_open(&r, FRWR_MW2);
		req = rig_req(&r, true);
		r.c[0]->hold = true;
		for (unsigned i = 0; i < 2; i++)
			cr_assert_eq(rig_map(&r, i, &h), 0);
		cr_assert_eq(frwr_fill_send(&e, &r.c[0]->fab, rig_list(&r, 0, 1), req, req), 0);
		cr_assert_eq(rig_post(&r, 0, &e), 0);
		mock_conn_break(r.c[0], executed);
		mock_dispatch(r.c[0]);
		cr_assert_eq(r.nreq_failed, 1);
		for (unsigned i = 0; i < 2; i++) {
			cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_DEAD);
			cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, i), rig_done,
						     &r), -ENOTCONN);
			cr_assert_eq(frwr_map_end(rig_at(&r, i)), -ENOTCONN);
			cr_assert_eq(rig_map(&r, i, &h), -ENOTCONN, "no way back");
		}
		frwr_stats(r.pool, &s);
		cr_assert_eq(s.flushed_bind, 2);
		cr_assert_eq(s.flushed_inv, 0);
		rig_close(&r);
	}
}

Test(frwr_fail, t11_r31_flushed_invalidates)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1 };

	for_each_case(mode, modes) {
		for (unsigned executed = 0; executed <= 1; executed++) {
			struct frwr_entry e;
			struct frwr_stats s;
			struct rig r;

			rig_open(&r, *mode);
			rig_valid(&r, 0, 0);
			mock_dispatch(r.c[0]);
			cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r),
				     0);
			r.c[0]->hold = true;
			cr_assert_eq(rig_post(&r, 0, &e), 0);
			mock_conn_break(r.c[0], executed);
			mock_dispatch(r.c[0]);
			cr_assert_eq(r.ndone, 1);
			cr_assert_eq(r.done_rc, -ENOTCONN);
			cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_DEAD);
			frwr_stats(r.pool, &s);
			cr_assert_eq(s.flushed_inv, 1);
			cr_assert_eq(s.flushed_bind, 0);
			rig_close(&r);
			cr_assert_eq(r.ndone, 1);
		}
	}
}

/* The peer has invalidated and answered, and then the connection fails before the bind was retired:
 * it is flushed, and nobody lied. */
Test(frwr_fail, t11_r31_flushed_behind_the_answer)
{
	struct frwr_handle h;
	struct frwr_stats s;
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	h = rig_valid(&r, 0, 0);
	wc = mock_peer_inv(r.c[0], h.rkey);
	cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), rig_at(&r, 0));
	mock_conn_break(r.c[0], 0);
	mock_dispatch(r.c[0]);
	cr_assert_eq(frwr_answered(rig_at(&r, 0), true), -ENOTCONN);
	cr_assert_eq(frwr_answered(rig_at(&r, 0), false), -ENOTCONN);
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.remote_inv_missing, 0);
	rig_close(&r);
}

/* In whatever state the end finds a window. */
Test(frwr_fail, t11_r34_r35_kill_and_destroy)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1, FRWR_REREG, FRWR_STATIC };

	for_each_case(mode, modes) {
		bool windows = *mode <= FRWR_MW1;
		struct frwr_handle h;
		struct frwr_entry e;
		struct rig r;

		rig_open(&r, *mode);
		cr_assert_eq(rig_map(&r, 0, &h), 0);
		rig_valid(&r, 0, 1);
		rig_valid(&r, 0, 2);
		r.c[0]->hold = true;
		cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 2), rig_done, &r),
			     windows ? 0 : 1);
		if (windows)
			cr_assert_eq(rig_post(&r, 0, &e), 0);
		/* The drain was cut short, say: its completion never came. */
		frwr_pool_kill(r.pool);
		cr_assert_eq(r.ndone, windows);
		for (unsigned i = 0; i < RIG_SLOTS; i++)
			cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_DEAD);
		frwr_pool_kill(r.pool);
		cr_assert_eq(r.ndone, windows, "once");
		mock_conn_break(r.c[0], 0);
		mock_dispatch(r.c[0]);
		cr_assert_eq(r.ndone, windows, "not by what comes late, either");
		for (unsigned i = 0; i < RIG_SLOTS; i++)
			cr_assert_eq(frwr_state(rig_at(&r, i)), FRWR_DEAD);
		rig_close(&r);
		cr_assert_eq(mock.mw_allocs, windows ? RIG_SLOTS : 0);
		cr_assert_eq(mock.mw_deallocs, mock.mw_allocs);
	}
}

/* Its done() finds all windows dead, whichever was killed first. */
static void all_are_dead(void *arg, int rc)
{
	struct rig *r = arg;

	for (unsigned i = 0; i < RIG_SLOTS; i++)
		cr_assert_eq(frwr_state(rig_at(r, i)), FRWR_DEAD, "window %u", i);
	rig_done(arg, rc);
}

Test(frwr_fail, t11_r34_a_kill_is_told_when_all_are_dead)
{
	struct frwr_entry e;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	rig_valid(&r, 0, 0);
	rig_valid(&r, 0, 1);
	r.c[0]->hold = true;
	cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), all_are_dead, &r), 0);
	cr_assert_eq(rig_post(&r, 0, &e), 0);
	frwr_pool_kill(r.pool);
	cr_assert_eq(r.ndone, 1);
	cr_assert_eq(r.done_rc, -ENOTCONN);
	mock_conn_break(r.c[0], 0);
	mock_dispatch(r.c[0]);
	rig_close(&r);
}

Test(frwr_fail, t12_r33_windows_that_stay)
{
	struct frwr_stats s;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	mock.dealloc_mw_fails = 3;
	cr_assert_eq(frwr_pool_destroy(r.pool), 3);
	cr_assert_eq(mock.nmw, 3);
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.orphaned, 3);
	/* When the device is closed: those again, and no others. */
	mock.dealloc_mw_fails = 1;
	cr_assert_eq(frwr_pool_destroy(r.pool), 1);
	rig_close(&r);
	cr_assert_eq(mock.mw_deallocs, RIG_SLOTS);
	cr_assert_eq(mock.deallocs_failed, 4);
}

Test(frwr_fail, r11_a_pool_that_cannot_be_made)
{
	for (int n = 0; n < 8; n++) {
		struct frwr_pool *pool = NULL;
		struct mock_conn *c;
		struct fab_pd *pd;

		mock_init();
		pd = mock_pd_create();
		c = mock_conn_create(pd, 8);
		mock.alloc_mw_fails_after = n;
		cr_assert_eq(frwr_pool_create(&pool, pd, n % 2 ? FRWR_MW1 : FRWR_MW2, 8), -ENOMEM);
		cr_assert_null(pool);
		mock_conn_destroy(c);
		mock_pd_destroy(pd);
		mock_fini();
	}
	mock_init();
	mock.attr.caps |= FAB_CAP_REREG_MR;
	{
		struct fab_pd *pd = mock_pd_create();
		struct frwr_pool *pool;

		mock.reg_mr_fails = 1;
		cr_assert_eq(frwr_pool_create(&pool, pd, FRWR_REREG, 8), -ENOMEM);
		mock_pd_destroy(pd);
	}
	mock_fini();
	cr_assert_eq(frwr_pool_destroy(NULL), 0);
}

/* The mock ends the program when windows are older than queue pairs, or outlive them or their
 * region; here all of it is bound when it ends, and rig_close() goes the way of frwr.h. */
Test(frwr_fail, t13_order_of_teardown)
{
	static const enum frwr_mode modes[] = { FRWR_MW2, FRWR_MW1, FRWR_REREG, FRWR_STATIC };

	for_each_case(mode, modes) {
		struct rig r;

		rig_open(&r, *mode);
		for (unsigned i = 0; i < RIG_SLOTS; i++)
			rig_valid(&r, i % 2, i);
		rig_close(&r);
	}
}

Test(frwr_fail, t13_the_mock_sees_a_wrong_order, .signal = SIGABRT)
{
	struct rig r;

	rig_open(&r, FRWR_MW2);
	rig_valid(&r, 0, 0);
	mock_conn_destroy(r.c[0]);
}

Test(frwr_fail, t13_the_mock_sees_windows_that_are_too_old, .signal = SIGABRT)
{
	struct frwr_pool *pool;
	struct fab_pd *pd;

	mock_init();
	pd = mock_pd_create();
	frwr_pool_create(&pool, pd, FRWR_MW2, 1);
	mock_conn_create(pd, 1);
}

Test(frwr_fail, t09_the_mock_panics, .signal = SIGABRT)
{
	struct frwr_handle h;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	h = rig_valid(&r, 0, 0);
	mock_peer_inv(r.c[0], h.rkey);
	mock_peer_inv(r.c[0], h.rkey);
}

/* Of a completion that failed only wr_id and status mean something. */
Test(frwr_fail, r43_garbage_in_failed_completions)
{
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	memset(&wc, 0xff, sizeof(wc));
	wc.status = IBV_WC_LOC_PROT_ERR;
	wc.invalidated_rkey = rig_valid(&r, 0, 0).rkey;
	wc.opcode = IBV_WC_RECV;
	wc.wc_flags = IBV_WC_WITH_INV;
	cr_assert_eq(frwr_reminv(r.pool, &r.c[0]->fab, &wc), NULL);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_VALID);
	wc.opcode = (enum ibv_wc_opcode)0x5a5a;
	rig_at(&r, 0)->bind_cqe.done(&r.c[0]->fab, &rig_at(&r, 0)->bind_cqe, &wc);
	cr_assert_eq(frwr_state(rig_at(&r, 0)), FRWR_DEAD);
	rig_close(&r);
}

static char line[256];

static void sink(enum log_level level, const char *text)
{
	snprintf(line, sizeof(line), "%s", text);
}

Test(frwr_fail, r42_lines_name_queue_pair_window_and_key)
{
	struct ibv_wc wc = { .status = IBV_WC_MW_BIND_ERR, .qp_num = 77 };
	struct frwr_handle h;
	struct rig r;
	char key[32];

	log_init(sink, LOG_LEVEL_DEBUG);
	rig_open(&r, FRWR_MW2);
	h = rig_valid(&r, 0, 3);
	snprintf(key, sizeof(key), "key 0x%x", h.rkey);
	for (int i = 0; i < 2; i++) {
		struct fab_cqe *cqe = i ? &rig_at(&r, 3)->inv_cqe : &rig_at(&r, 3)->bind_cqe;

		line[0] = '\0';
		cqe->done(&r.c[0]->fab, cqe, &wc);
		cr_assert(strstr(line, "qp 77") && strstr(line, "window 3") && strstr(line, key),
			  "%s", line);
	}
	/* Flushes only follow what was told, and what went well is not told. */
	line[0] = '\0';
	for (int i = 0; i < 4; i++) {
		struct fab_cqe *cqe = i % 2 ? &rig_at(&r, 3)->inv_cqe : &rig_at(&r, 3)->bind_cqe;

		wc.status = i < 2 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
		cqe->done(&r.c[0]->fab, cqe, &wc);
		cr_assert_str_eq(line, "", "%d", i);
	}
	rig_close(&r);
}

Test(frwr_fail, r39_everything_is_counted)
{
	struct frwr_handle h;
	struct frwr_entry e;
	struct frwr_stats s;
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, FRWR_MW2);
	for (unsigned i = 0; i < 4; i++)
		h = rig_valid(&r, 0, i);
	wc = mock_peer_inv(r.c[0], h.rkey);
	frwr_reminv(r.pool, &r.c[0]->fab, &wc);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, i), rig_done, &r), 0);
		cr_assert_eq(rig_post(&r, 0, &e), 0);
		mock_dispatch(r.c[0]);
	}
	cr_assert_eq(rig_map(&r, 0, &h), 0);
	frwr_stats(r.pool, &s);
	cr_assert_eq(s.mapped, 5);
	cr_assert_eq(s.bind_posted, 4);
	cr_assert_eq(s.local_inv, 3);
	cr_assert_eq(s.remote_inv, 1);
	cr_assert_eq(s.flushed_bind + s.flushed_inv + s.post_fail + s.partial_post + s.orphaned +
		     s.remote_inv_missing + s.quirk_inv_flag + s.key_wraps, 0);
	rig_close(&r);
}
