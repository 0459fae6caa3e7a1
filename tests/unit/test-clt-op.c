/* SPDX-License-Identifier: BSD-3-Clause */
/* How an operation is cut into parts, over how many permits at once, and how it ends. */
#include <errno.h>

#include "unit.h"

#include "clt-io-priv.h"

/* ---- a session without a fabric: what is queued is listed here ---- */

static struct clt_io sess_io;
static struct clt_account account;	/* the only one */
static struct clt_attempt att;
static struct clt_con cons[2];
static struct clt_slot *queued[1024];
static struct clt_waiter *looks[1024];
static unsigned nqueued, nlooks;

void clt_tx_queue(struct clt_con *to, struct clt_slot *slot)
{
	cr_assert(to == &cons[0] || to == &cons[1]);
	queued[nqueued++] = slot;
}

void clt_tx_flush(struct clt_con *to)
{
}

static void wait_more(struct clt_waiter *w, struct clt_con *to)
{
	cr_assert_fail("nobody is to wait here");
}

static void wait_look(struct clt_waiter *w)
{
	looks[nlooks++] = w;
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

static const struct clt_wait_ops wait_ops = {
	.look = wait_look,
	.settle = wait_settle,
	.more = wait_more,
	.batch_begin = wait_batch_begin,
	.batch_end = wait_batch_end,
};

static void set_up(bool up)
{
	atomic_store(&att.state, up ? CLT_PATH_UP : CLT_PATH_BACKOFF);
}

static void world(unsigned permits, uint32_t max_io)
{
	memset(&sess_io, 0, sizeof(sess_io));
	memset(&att, 0, sizeof(att));
	memset(cons, 0, sizeof(cons));
	cons[0].att = &att;
	cons[1].cid = 1;
	cons[1].att = &att;
	att.cons = cons;
	att.ncons = ARRAY_SIZE(cons);
	att.io = &sess_io;
	sess_io.wait = &wait_ops;
	sess_io.nloops = 1;
	sess_io.atts[0] = &att;
	atomic_store(&sess_io.natts, 1);
	clt_slot_init(&sess_io);
	cr_assert_eq(clt_slot_limit(&sess_io, permits), (int)permits);
	clt_account_open(&account, &sess_io);
	atomic_store(&sess_io.max_io_size, max_io);
	att.max_io = max_io;
	nqueued = nlooks = 0;
	set_up(true);
}

static uint8_t buf[1 << 20];

static void start(struct clt_op *op, uint64_t len)
{
	memset(op, 0, sizeof(*op));
	op->io = &sess_io;
	op->account = &account;
	op->dir = RTRS_DIR_WRITE;
	op->buf = buf;
	op->len = len;
	op->part_max = 1u << 31;
	clt_op_start(op, NULL);
}

static void answer(struct clt_slot *slot, int status)
{
	slot->status = status;
	slot->next = atomic_load(&slot->op->finished);
	atomic_store(&slot->op->finished, slot);
}

static void expect_all_free(void)
{
	cr_assert_eq(bitmap_weight(&sess_io.slots.permits), 0u);
	clt_slot_fini(&sess_io);
}

Test(clt_op, parts_cover_the_request_once)
{
	static const struct {
		uint64_t len;
		uint32_t max;
		unsigned parts;
		uint32_t last;
	} cases[] = {
		{ 512, 4096, 1, 512 }, { 4096, 4096, 1, 4096 }, { 4608, 4096, 2, 512 },
		{ 1 << 20, 131072, 8, 131072 }, { 131072, 122880, 2, 8192 },
	};

	for_each_case(k, cases) {
		struct clt_op op;
		uint64_t off = 0;

		world(64, k->max);
		start(&op, k->len);
		cr_assert_not(clt_op_step(&op));
		cr_assert_eq(nqueued, k->parts);
		for (unsigned i = 0; i < nqueued; i++) {
			cr_assert_eq(queued[i]->off, off);
			off += queued[i]->len;
			answer(queued[i], 0);
		}
		cr_assert_eq(off, k->len);
		cr_assert_eq(queued[nqueued - 1]->len, k->last);
		cr_assert(clt_op_step(&op));
		cr_assert_eq(op.status, 0);
		expect_all_free();
	}
}

Test(clt_op, one_part_without_data)
{
	struct clt_op op;

	world(4, 4096);
	start(&op, 0);
	op.buf = NULL;
	cr_assert_not(clt_op_step(&op));
	cr_assert_eq(nqueued, 1u);
	answer(queued[0], 0);
	cr_assert(clt_op_step(&op));
	expect_all_free();
}

/* A large request takes a quarter of the permits at a time, and goes on as answers come. */
Test(clt_op, bounded)
{
	struct clt_op op;

	world(32, 512);
	start(&op, 512 * 100);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_not(clt_op_step(&op));
		cr_assert_leq(bitmap_weight(&sess_io.slots.permits), 8u);
		answer(queued[i], 0);
	}
	cr_assert(clt_op_step(&op));
	cr_assert_eq(nqueued, 100u);
	expect_all_free();
}

/* However many permits there are, so many parts of a request and no more are in flight. */
Test(clt_op, most_parts_in_flight)
{
	static const struct { unsigned permits, parts, most; } cases[] = {
		{ 256, CLT_OP_PARTS - 1, CLT_OP_PARTS - 1 }, { 256, CLT_OP_PARTS, CLT_OP_PARTS },
		{ 256, CLT_OP_PARTS + 1, CLT_OP_PARTS }, { 256, 4 * CLT_OP_PARTS, CLT_OP_PARTS },
		{ 4 * CLT_OP_PARTS - 1, 4 * CLT_OP_PARTS, CLT_OP_PARTS - 1 },
		{ 4 * CLT_OP_PARTS, 4 * CLT_OP_PARTS, CLT_OP_PARTS },
		{ 4 * CLT_OP_PARTS + 1, 4 * CLT_OP_PARTS, CLT_OP_PARTS },
		{ 16 * CLT_OP_PARTS, 4 * CLT_OP_PARTS, CLT_OP_PARTS },
	};

	for_each_case(k, cases) {
		struct clt_op op;

		world(k->permits, 512);
		start(&op, 512 * k->parts);
		cr_assert_not(clt_op_step(&op));
		cr_assert_eq(nqueued, k->most);
		for (unsigned i = 0; i < k->parts; i++) {
			cr_assert_eq(queued[i]->off, 512 * i);
			cr_assert_eq(queued[i]->len, 512u);
			answer(queued[i], 0);
			cr_assert_eq(clt_op_step(&op), i + 1 == k->parts);
			cr_assert_leq(nqueued, i + 1 + k->most);
		}
		cr_assert_eq(nqueued, k->parts);
		expect_all_free();
	}
}

/* Permits go to those in line, in order, and nobody passes by. */
Test(clt_op, line_for_permits)
{
	struct clt_op a, b, c;

	world(1, 4096);
	start(&a, 512);
	start(&b, 512);
	start(&c, 512);
	cr_assert_not(clt_op_step(&a));
	cr_assert_not(clt_op_step(&b));
	cr_assert_not(clt_op_step(&c));
	cr_assert_eq(nqueued, 1u);
	answer(queued[0], 0);
	cr_assert(clt_op_step(&a));
	cr_assert_eq(nlooks, 1u);
	cr_assert_not(clt_op_step(&c));
	cr_assert_eq(nqueued, 1u);		/* the permit is b's */
	cr_assert_not(clt_op_step(&b));
	cr_assert_eq(queued[1]->op, &b);
	cr_assert(!a.waited_ns && b.waited_ns);
	answer(queued[1], 0);
	cr_assert(clt_op_step(&b));
	cr_assert_not(clt_op_step(&c));
	answer(queued[2], 0);
	cr_assert(clt_op_step(&c));
	expect_all_free();
}

/* Requests that wait for a user message do not keep it from being sent. */
Test(clt_op, user_message_when_permits_are_held)
{
	struct clt_op io[3], user;

	world(4, 4096);
	for (unsigned i = 0; i < 3; i++) {
		start(&io[i], 512);
		cr_assert_not(clt_op_step(&io[i]));
	}
	cr_assert_eq(nqueued, 3u);
	start(&user, 0);
	user.kind = CLT_OP_FREE;
	cr_assert_not(clt_op_step(&user));
	cr_assert_eq(nqueued, 4u);
	cr_assert_eq(queued[3], clt_slot_ctl(&sess_io));
	cr_assert_eq(queued[3]->id, 0u);
}

/* With one permit in all they take turns. */
Test(clt_op, one_permit)
{
	struct clt_op io, user;
	struct clt_slot *slot;

	world(1, 4096);
	start(&io, 512);
	cr_assert_not(clt_op_step(&io));
	start(&user, 0);
	user.kind = CLT_OP_FREE;
	cr_assert_not(clt_op_step(&user));
	cr_assert_eq(nqueued, 1u);
	slot = queued[0];
	cr_assert_eq(slot->id, 0u);
	/* The request waits for something while it keeps its permit. */
	set_up(false);
	answer(slot, CLT_AGAIN);
	cr_assert_not(clt_op_step(&io));
	cr_assert_eq(nlooks, 1u);
	set_up(true);
	cr_assert_not(clt_op_step(&user));
	cr_assert_eq(nqueued, 2u);
	cr_assert_eq(queued[1]->op, &user);
	cr_assert_not(clt_op_step(&io));
	cr_assert_eq(nqueued, 2u);
	answer(queued[1], 0);
	cr_assert(clt_op_step(&user));
	cr_assert_eq(nlooks, 2u);
	cr_assert_not(clt_op_step(&io));
	cr_assert_eq(nqueued, 3u);
	cr_assert_eq(queued[2], slot);
	answer(slot, 0);
	cr_assert(clt_op_step(&io));
	expect_all_free();
}

/* The first error ends it when all that was sent has come back; nothing more is sent. */
Test(clt_op, error)
{
	struct clt_op op;

	world(8, 512);
	start(&op, 512 * 10);
	cr_assert_not(clt_op_step(&op));
	cr_assert_eq(nqueued, 2u);
	answer(queued[0], -ENOSPC);
	cr_assert_not(clt_op_step(&op));
	answer(queued[1], -EIO);
	cr_assert(clt_op_step(&op));
	cr_assert_eq(op.status, -ENOSPC);
	cr_assert_eq(nqueued, 2u);
	expect_all_free();
}

static int lost_status;

static int lost(const struct clt_op *op)
{
	int status = lost_status;

	lost_status = -ECONNABORTED;
	return status;
}

/* Another path was up when it came back, and is not any more: it must not wait, because the path
 * that comes next is greeted with the control slot. */
Test(clt_op, user_message_that_lost_both_paths)
{
	struct clt_op user;

	world(1, 4096);
	start(&user, 512);
	user.kind = CLT_OP_FREE;
	user.lost = lost;
	cr_assert_not(clt_op_step(&user));
	cr_assert_eq(nqueued, 1u);
	cr_assert_eq(queued[0], clt_slot_ctl(&sess_io));
	lost_status = CLT_AGAIN;
	set_up(false);
	answer(queued[0], CLT_AGAIN);
	cr_assert(clt_op_step(&user));
	cr_assert_eq(user.status, -ECONNABORTED);
	cr_assert_null(clt_slot_ctl(&sess_io)->op);
	expect_all_free();
}

static void start_user(struct clt_op *op, uint64_t len)
{
	start(op, len);
	op->kind = CLT_OP_FREE;
	op->lost = lost;
}

/* Its permit is none of the path that is left: it takes another one. */
Test(clt_op, user_message_of_a_deeper_path)
{
	struct clt_op io, user;

	world(8, 4096);
	start(&io, 512);
	cr_assert_not(clt_op_step(&io));
	start_user(&user, 512);
	cr_assert_not(clt_op_step(&user));
	cr_assert_eq(queued[1]->id, 2u);
	cr_assert_eq(clt_slot_limit(&sess_io, 2), 8);
	lost_status = CLT_AGAIN;
	answer(queued[1], CLT_TOO_LARGE);
	cr_assert_not(clt_op_step(&user));
	cr_assert_eq(nqueued, 3u);
	cr_assert_eq(queued[2]->id, 0u);
	answer(queued[2], 0);
	cr_assert(clt_op_step(&user));
	answer(queued[0], 0);
	cr_assert(clt_op_step(&io));
	cr_assert_eq(user.status, 0);
	expect_all_free();
}

/* It cannot be cut. */
Test(clt_op, user_message_that_is_too_large)
{
	struct clt_op user;

	world(8, 512);
	start_user(&user, 513);
	cr_assert_not(clt_op_step(&user));
	lost_status = CLT_AGAIN;
	answer(queued[0], CLT_TOO_LARGE);
	cr_assert(clt_op_step(&user));
	cr_assert_eq(user.status, -EMSGSIZE);
	cr_assert_eq(nqueued, 1u);
	expect_all_free();
}

/* A lost path: the same permit carries the same part again; without a path in time it is EIO. */
Test(clt_op, lost_path)
{
	struct clt_op op;
	struct clt_slot *slot;

	world(8, 4096);
	start(&op, 512);
	cr_assert_not(clt_op_step(&op));
	slot = queued[0];
	set_up(false);
	answer(slot, CLT_AGAIN);
	cr_assert_not(clt_op_step(&op));
	cr_assert_not(list_empty(&sess_io.up_waiters));
	cr_assert_eq(op.waited_ns, 0u);
	set_up(true);
	cr_assert_not(clt_op_step(&op));
	cr_assert_gt(op.waited_ns, 0u);
	cr_assert_eq(nqueued, 2u);
	cr_assert_eq(queued[1], slot);
	set_up(false);
	atomic_store(&sess_io.state, CLT_SESS_EXPIRED);
	answer(slot, CLT_AGAIN);
	cr_assert(clt_op_step(&op));
	cr_assert_eq(op.status, -EIO);
	cr_assert(list_empty(&sess_io.up_waiters));
	expect_all_free();
}

/* Parts that a lost path had are sent again as they were sent before, those that had not been
 * posted behind them, and what had not been cut yet comes last. */
Test(clt_op, lost_parts_keep_their_order)
{
	/* 6 and 7 were refused when the path was sealed */
	static const unsigned back[] = { 6, 7, 0, 1, 3, 4 };
	static const unsigned again[] = { 0, 1, 3, 4, 6, 7, 8, 9 };
	struct clt_op op;

	world(32, 4096);
	start(&op, 10 * 4096);
	cr_assert_not(clt_op_step(&op));
	cr_assert_eq(nqueued, 8u);
	for (unsigned i = 0; i < nqueued; i++)
		cr_assert_eq(queued[i]->off, i * 4096);
	set_up(false);
	answer(queued[2], 0);
	answer(queued[5], 0);
	for_each_case(i, back) {
		answer(queued[*i], CLT_AGAIN);
		if (*i == 7)
			cr_assert_not(clt_op_step(&op));
	}
	cr_assert_not(clt_op_step(&op));
	nqueued = 0;
	set_up(true);
	cr_assert_not(clt_op_step(&op));
	cr_assert_eq(nqueued, ARRAY_SIZE(again));
	for (unsigned i = 0; i < nqueued; i++) {
		cr_assert_eq(queued[i]->off, again[i] * 4096, "part %u begins at %llu", i,
			     (unsigned long long)queued[i]->off);
		answer(queued[i], 0);
	}
	cr_assert(clt_op_step(&op));
	cr_assert_eq(op.status, 0);
	expect_all_free();
}

/* Data that the arena has no place for stays out of it: the request is refused when it is sent, and
 * is cut again. */
Test(clt_op, part_without_a_place_in_the_arena)
{
	static uint8_t mem[5 * 4096];
	struct clt_op op;
	struct clt_slot *slot;

	world(4, 8192);
	memset(buf, 1, sizeof(buf));
	start(&op, 8192);
	cr_assert_not(clt_op_step(&op));
	slot = queued[0];
	set_up(false);
	answer(slot, CLT_AGAIN);
	cr_assert_not(clt_op_step(&op));
	/* Another path comes up, which copies. */
	sess_io.arena = (struct clt_arena){ .mem = mem, .room = 4096, .n = 5 };
	att.way = CLT_MEM_BOUNCE;
	att.max_io = 4096;
	atomic_store(&sess_io.max_io_size, 4096);
	set_up(true);
	cr_assert_not(clt_op_step(&op));
	cr_assert_eq(queued[1], slot);
	for (unsigned i = 0; i < sizeof(mem); i++)
		cr_assert_eq(mem[i], 0, "byte %u", i);
	nqueued = 0;
	answer(slot, CLT_TOO_LARGE);
	cr_assert_not(clt_op_step(&op));
	while (nqueued) {
		slot = queued[--nqueued];
		cr_assert_eq(slot->len, 4096u);
		cr_assert_arr_eq(mem + (slot - sess_io.slots.slot) * 4096, buf, 4096);
		answer(slot, 0);
		clt_op_step(&op);
	}
	cr_assert_eq(op.status, 0);
	expect_all_free();
}

/* Operations that wait for a path are told of it in the order in which they came. */
Test(clt_op, told_of_a_path_in_order)
{
	struct clt_op op[5];

	world(8, 4096);
	set_up(false);
	for_each_case(o, op) {
		start(o, 512);
		cr_assert_not(clt_op_step(o));
	}
	set_up(true);
	nlooks = 0;
	clt_slot_wake(&sess_io);
	cr_assert_eq(nlooks, ARRAY_SIZE(op));
	for (unsigned i = 0; i < nlooks; i++)
		cr_assert(looks[i] == &op[i].waiter, "waiter %u", i);
	for_each_case(o, op) {
		cr_assert_not(clt_op_step(o));
		answer(queued[nqueued - 1], 0);
		cr_assert(clt_op_step(o));
	}
	expect_all_free();
}

/* A permit that comes back belongs to who waits first, also when somebody asks for one before it
 * was handed on. */
Test(clt_op, nobody_overtakes_who_waits_for_a_permit)
{
	struct clt_op first, late;

	world(4, 4096);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(bitmap_get(&sess_io.slots.permits), (int)i);
	start(&first, 512);
	cr_assert_not(clt_op_step(&first));
	bitmap_put(&sess_io.slots.permits, 1);	/* as clt_slot_put(), which looks for others next */
	start(&late, 512);
	cr_assert_not(clt_op_step(&late));
	cr_assert_eq(nqueued, 0u);
	cr_assert_not(clt_op_step(&first));
	cr_assert_eq(nqueued, 1u);
	cr_assert_eq(queued[0]->op, &first);
	answer(queued[0], 0);
	cr_assert(clt_op_step(&first));
	cr_assert_not(clt_op_step(&late));
	cr_assert_eq(nqueued, 2u);
	answer(queued[1], 0);
	cr_assert(clt_op_step(&late));
	bitmap_put(&sess_io.slots.permits, 0);
	bitmap_put(&sess_io.slots.permits, 2);
	expect_all_free();
}

/* ---- ages ---- */

static struct {
	const void *of;
	uint64_t began_ns;
} told[32];
static unsigned ntold;

static void tell_age(void *arg, const void *of, uint64_t began_ns)
{
	told[ntold].of = of;
	told[ntold++].began_ns = began_ns;
}

/* Expect that @op alone of all operations is told. */
static void expect_told(const struct clt_op *op, const char *when)
{
	ntold = 0;
	clt_io_each_age(&sess_io, tell_age, NULL);
	cr_assert_geq(ntold, 1u, "%s: nothing is told", when);
	for (unsigned i = 0; i < ntold; i++) {
		cr_assert_eq(told[i].of, op->of, "%s", when);
		cr_assert_eq(told[i].began_ns, op->began_ns, "%s", when);
	}
}

static void expect_none_told(const char *when)
{
	ntold = 0;
	clt_io_each_age(&sess_io, tell_age, NULL);
	cr_assert_eq(ntold, 0u, "%s", when);
}

static void start_counted(struct clt_op *op, uint64_t began_ns)
{
	start(op, 512);
	op->of = op;
	op->began_ns = began_ns;
}

/* The age counts from the time when the user asked, wherever the operation is, until its end. */
Test(clt_op, age_of_an_operation)
{
	struct clt_op op, uncounted;
	struct clt_slot *uncounted_slot;

	world(8, 4096);
	start(&uncounted, 512);
	cr_assert_not(clt_op_step(&uncounted));
	uncounted_slot = queued[0];
	expect_none_told("an operation without a time");
	start_counted(&op, 4711);
	cr_assert_not(clt_op_step(&op));
	expect_told(&op, "in flight");
	set_up(false);
	answer(queued[1], CLT_AGAIN);
	cr_assert_not(clt_op_step(&op));
	expect_told(&op, "its path is lost");
	nqueued = 0;
	set_up(true);
	cr_assert_not(clt_op_step(&op));
	cr_assert_eq(nqueued, 1u);
	expect_told(&op, "sent again");
	answer(queued[0], 0);
	expect_told(&op, "answered, and its owner has not looked");
	cr_assert(clt_op_step(&op));
	expect_none_told("at the end");
	answer(uncounted_slot, 0);
	cr_assert(clt_op_step(&uncounted));
	expect_all_free();
}

Test(clt_op, age_of_an_operation_that_waits)
{
	struct clt_op op;

	world(4, 4096);
	set_up(false);
	start_counted(&op, 4711);
	cr_assert_not(clt_op_step(&op));
	expect_told(&op, "without a path");
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(bitmap_get(&sess_io.slots.permits), (int)i);
	set_up(true);
	clt_slot_wake(&sess_io);
	cr_assert_not(clt_op_step(&op));
	expect_told(&op, "without a permit");
	bitmap_put(&sess_io.slots.permits, 1);
	clt_slot_regrant(&sess_io);
	cr_assert_not(clt_op_step(&op));
	expect_told(&op, "in flight");
	answer(queued[0], 0);
	cr_assert(clt_op_step(&op));
	expect_none_told("at the end");
	bitmap_put(&sess_io.slots.permits, 0);
	bitmap_put(&sess_io.slots.permits, 2);
	expect_all_free();
}
