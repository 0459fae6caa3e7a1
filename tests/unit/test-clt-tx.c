/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of requests on a connection: they are posted as they were queued, and when their path
 * is lost they come back to their owners as they were posted, whichever permits they have. */
#include <limits.h>

#include "unit.h"

#include "clt-io-priv.h"

#define DEPTH 64u
#define NCONS 3u

/* ---- a path without a fabric: what is posted and what comes back is listed here ---- */

static struct clt_io io;
static struct clt_account account;
static struct clt_attempt att;
static struct clt_con cons[NCONS];
static struct fab_conn conns[NCONS];
static struct rtrs_rbuf rbufs[DEPTH];
static struct clt_op ops[DEPTH];	/* that of the slot with this number */
static unsigned posted[2 * DEPTH], nposted, back[2 * DEPTH], nback;

static int post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		struct fab_cqe *cqe = (struct fab_cqe *)(uintptr_t)wr->wr_id;

		posted[nposted++] = container_of(cqe, struct clt_slot, cqe)->id;
	}
	return 0;
}

static int need_rearm(const struct fab_conn *conn)
{
	return 0;
}

static const struct fab_provider provider = { .post_send = post_send, .need_rearm = need_rearm };

static void wait_count(struct clt_waiter *w)
{
	back[nback++] = (unsigned)(container_of(w, struct clt_op, waiter) - ops);
}

static void wait_look(struct clt_waiter *w)
{
}

static void wait_more(struct clt_waiter *w, struct clt_con *con)
{
	cr_assert_fail("nobody is to wait here");
}

static void wait_settle(struct clt_waiter *w, unsigned n)
{
}

static void wait_batch_begin(void)
{
}

static void wait_batch_end(void)
{
}

static void wait_con_kick(struct clt_con *con)
{
}

static const struct clt_wait_ops wait_ops = {
	.count = wait_count,
	.look = wait_look,
	.settle = wait_settle,
	.more = wait_more,
	.batch_begin = wait_batch_begin,
	.batch_end = wait_batch_end,
	.con_kick = wait_con_kick,
};

static size_t encode(const struct clt_op *op, uint64_t off, uint32_t len, uint32_t tag,
		     uint8_t *usr)
{
	memset(usr, 0, 8);
	return 8;
}

static void setup(void)
{
	io.wait = &wait_ops;
	clt_slot_init(&io);
	clt_account_open(&account, &io);
	cr_assert_eq(clt_slot_limit(&io, DEPTH), (int)DEPTH);
	att = (struct clt_attempt){ .io = &io, .cons = cons, .ncons = NCONS, .depth = DEPTH,
				    .rbufs = rbufs };
	cr_assert_eq(rtrs_geom_init(&att.geom, DEPTH, 4096, 4096), 0);
	att.max_io = 4096;
	for (unsigned i = 0; i < NCONS; i++) {
		conns[i] = (struct fab_conn){ .ops = &provider, .context = &cons[i] };
		cons[i] = (struct clt_con){ .att = &att, .cid = i, .key = 1 + i, .fab = &conns[i],
					    .open = true };
	}
	for (unsigned i = 0; i < DEPTH; i++) {
		ops[i] = (struct clt_op){ .io = &io, .account = &account, .dir = RTRS_DIR_WRITE,
					  .encode = encode };
		clt_op_start(&ops[i], NULL);
		io.slots.slot[i].op = &ops[i];
	}
	nposted = nback = 0;
}

static void teardown(void)
{
	clt_slot_fini(&io);
}

TestSuite(clt_tx, .init = setup, .fini = teardown);

static void queue(unsigned cid, unsigned id)
{
	clt_tx_queue(&cons[cid], &io.slots.slot[id]);
}

static void expect(const char *what, const unsigned *got, unsigned n, const unsigned *want,
		   unsigned nwant)
{
	cr_assert_eq(n, nwant, "%s: %u requests", what, n);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(got[i], want[i], "%s: request %u is %u, expected %u", what, i, got[i],
			     want[i]);
}

static const unsigned shuffled[] = { 7, 3, 40, 1, 63, 2, 8, 33, 5, 4 };

/* In one chain, or each by itself. */
Test(clt_tx, posted_as_queued_and_back_as_posted)
{
	for (unsigned alone = 0; alone < 2; alone++) {
		nposted = nback = 0;
		for_each_case(id, shuffled) {
			queue(1, *id);
			if (alone)
				clt_tx_flush(&cons[1]);
		}
		clt_tx_flush(&cons[1]);
		expect("posted", posted, nposted, shuffled, ARRAY_SIZE(shuffled));
		cr_assert_eq(nback, 0);
		clt_tx_fail_over(&att);
		expect("back", back, nback, shuffled, ARRAY_SIZE(shuffled));
		for_each_case(id, shuffled)
			cr_assert_eq(io.slots.slot[*id].status, CLT_AGAIN);
		cr_assert_eq(atomic_load(&cons[1].inflight), 0);
	}
}

/* Numbers of requests come round again after 2^32 of them. */
Test(clt_tx, back_as_posted_when_numbers_wrap)
{
	cons[1].nsent = UINT_MAX - 4;
	for_each_case(id, shuffled)
		queue(1, *id);
	clt_tx_flush(&cons[1]);
	clt_tx_fail_over(&att);
	expect("back", back, nback, shuffled, ARRAY_SIZE(shuffled));
}

/* Those of each connection, whatever the others have sent; user messages have theirs. */
Test(clt_tx, each_connection_by_itself)
{
	unsigned of[NCONS][DEPTH], n[NCONS] = { 0 };

	for (unsigned i = 0; i < DEPTH; i++) {
		unsigned id = i * 37 % DEPTH, cid = i * 5 / 3 % NCONS;

		of[cid][n[cid]++] = id;
		queue(cid, id);
	}
	cons[2].nsent = 1000;
	att.ops = &(const struct clt_con_ops){ .posted = (void (*)(struct clt_con *))clt_tx_flush };
	for (unsigned cid = 0; cid < NCONS; cid++)
		clt_tx_flush(&cons[cid]);
	cr_assert_eq(nposted, DEPTH);
	clt_tx_fail_over(&att);
	cr_assert_eq(nback, DEPTH);
	for (unsigned cid = 0; cid < NCONS; cid++) {
		unsigned at = 0;

		for (unsigned i = 0; i < DEPTH; i++)
			at += at < n[cid] && back[i] == of[cid][at];
		cr_assert_eq(at, n[cid], "connection %u", cid);
	}
}

/* Another path's are not touched, nor what is idle. */
Test(clt_tx, other_paths_keep_theirs)
{
	static struct clt_attempt other;
	static struct clt_con others[2];
	static struct fab_conn fab = { .ops = &provider };
	static const unsigned mine[] = { 9, 2 };

	other = att;
	other.index = 1;
	other.cons = others;
	other.ncons = 2;
	fab.context = &others[1];
	others[0] = (struct clt_con){ .att = &other, .key = 101 };
	others[1] = (struct clt_con){ .att = &other, .cid = 1, .key = 102, .fab = &fab,
				      .open = true };
	clt_tx_queue(&others[1], &io.slots.slot[5]);
	clt_tx_flush(&others[1]);
	queue(1, 9);
	queue(1, 2);
	clt_tx_flush(&cons[1]);
	clt_tx_fail_over(&att);
	expect("back", back, nback, mine, 2);
	clt_tx_fail_over(&other);
	cr_assert_eq(nback, 3);
	cr_assert_eq(back[2], 5);
}

/* Queued when the path had failed already: not sent, and behind those that were. */
Test(clt_tx, queued_too_late)
{
	static const unsigned in_turn[] = { 6, 1, 3 };

	queue(1, 6);
	clt_tx_flush(&cons[1]);
	queue(1, 1);
	queue(1, 3);
	clt_tx_seal(&cons[1]);
	cr_assert_eq(nposted, 1);
	expect("not sent", back, nback, in_turn + 1, 2);
	clt_tx_fail_over(&att);
	cr_assert_eq(nback, 3);
	cr_assert_eq(back[2], 6);
	for_each_case(id, in_turn)
		cr_assert_eq(io.slots.slot[*id].status, CLT_AGAIN);
}
