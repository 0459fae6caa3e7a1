/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation as requests: its parts, their permits and their answers.  Runs on the owner of the
 * operation only.
 *
 * The happy path: clt_op_step() picks a connection, gets a permit for each part, queues the parts
 * (clt-tx.c), and sends them unless the leader will; op_take_finished() takes the answered parts
 * and gives their permits back.  The operation ends when each part was answered or given up; a part
 * in flight is never given up (clt-io.h, FAILURE).
 *
 * Possible failures: while no path is up the operation waits on a list, and fails with EIO after
 * io-timeout; parts of a lost path are sent again on another one; if a part does not fit the path
 * any more, the operation begins again, and each part may be done twice; a user message that is
 * too large fails with EMSGSIZE. */
#include <assert.h>
#include <errno.h>

#include "cleanup.h"
#include "clock.h"
#include "clt-io-priv.h"

#define OP_LARGE (32u << 10)		/* an operation of so many bytes goes over a connection for
					 * large requests */

void clt_op_start(struct clt_op *op, void (*fn)(struct clt_waiter *w))
{
	op->status = 0;
	op->epoch = UINT32_MAX;
	op->waited_ns = op->waits_since_ns = 0;
	op->con = NULL;
	atomic_init(&op->finished, NULL);
	op->held = op->granted = NULL;
	list_init(&op->permit_link);
	list_init(&op->up_link);
	op->listed = false;
	op->inflight = 0;
	op->next_off = 0;
	op->stage = CLT_OP_CUTS;
	assert(clt_op_is_user(op) || op->account);
	clt_wait_init(&op->waiter, op->io->wait, fn);
}

static void op_error(struct clt_op *op, int status)
{
	if (!op->status)
		op->status = status;
}

/* Done with @slot.  ORDER: @gave_up is called before another operation can have the permit. */
static void op_put(struct clt_op *op, struct clt_slot *slot)
{
	if (slot->posted && op->gave_up)
		op->gave_up(op, slot->epoch);
	atomic_store_explicit(&slot->began_ns, 0, memory_order_release);
	clt_slot_put(op, slot);
}

/* True if @slot is a user message that is too large for its path: it cannot be cut. */
static bool is_uncut(const struct clt_op *op, const struct clt_slot *slot)
{
	return clt_op_is_user(op) && op->buf && slot->len > op->con->att->max_io;
}

static void op_take_one(struct clt_op *op, struct clt_slot *slot)
{
	int status = slot->status;

	op->inflight--;
	clt_mem_unmap(slot, op->con->att);
	if (!status)
		clt_mem_fetch(slot, op->con->att);
	clt_slot_exit(op, slot);
	if (status <= 0 && slot->epoch < op->epoch)
		op->epoch = slot->epoch;
	if (status == CLT_AGAIN && op->lost)
		status = op->lost(op);
	else if (status == CLT_TOO_LARGE && is_uncut(op, slot))
		status = -EMSGSIZE;
	if (status == CLT_AGAIN) {
		slot->next = op->held;
		op->held = slot;
		return;
	}
	if (status == CLT_TOO_LARGE)
		op->stage = CLT_OP_RESTARTS;
	else if (status)
		op_error(op, status);
	op_put(op, slot);
}

static void op_take_finished(struct clt_op *op)
{
	struct clt_slot *slot = atomic_exchange(&op->finished, NULL);
	unsigned n = 0;

	while (slot) {
		struct clt_slot *next = slot->next;

		op_take_one(op, slot);
		slot = next;
		n++;
	}
	if (n)
		clt_wait_settle(&op->waiter, n);
}

static void op_give_up_held(struct clt_op *op)
{
	while (op->held) {
		struct clt_slot *slot = op->held;

		op->held = slot->next;
		op_put(op, slot);
	}
}

/* Begin again: parts that were answered are sent again.  If a write was sent before, @gave_up makes
 * the operation wait until the server is done with that write. */
static void op_restart(struct clt_op *op)
{
	op_give_up_held(op);
	op->next_off = 0;
	op->stage = CLT_OP_CUTS;
}

static void op_leave_lists(struct clt_op *op)
{
	if (!op->listed)
		return;
	pthread_mutex_lock(&op->io->lock);
	list_del(&op->up_link);
	pthread_mutex_unlock(&op->io->lock);
	clt_slot_leave(op);
	op->listed = false;
}

/* Small requests share a quarter of the connections: many in a single send and a single receive
 * cost least.  Large requests spread over the other connections, in parallel and out of the way of
 * the small.  All of these are the connections of the owner's loop. */
static unsigned op_pick_cid(const struct clt_attempt *att, const struct clt_op *op)
{
	unsigned nloops = op->io->nloops, mine = op->hint % nloops, turn = op->hint / nloops;
	unsigned n = (att->ncons - 1 - mine + nloops - 1) / nloops, small = MAX(n / 4, 1u);

	if (n == small || !op->buf || op->len < OP_LARGE)
		turn %= small;
	else
		turn = small + turn % (n - small);
	return 1 + mine + turn * nloops;
}

/* Choose the connection of @op.  NULL: no path is up, or the path of the parts in flight is not,
 * and these parts have to come back first. */
static struct clt_con *op_pick_con(const struct clt_op *op)
{
	struct clt_attempt *att;

	if (clt_op_is_handshake(op))
		return op->via && atomic_load(&op->via->state) == CLT_PATH_OPENING ?
			&op->via->cons[0] : NULL;
	if (op->inflight)
		return clt_attempt_is_up(op->con->att) ? op->con : NULL;
	att = clt_pick(op->io, op->hint);
	if (!att)
		return NULL;
	return &att->cons[clt_op_is_user(op) ? 0 : op_pick_cid(att, op)];
}

/* The connection to send on now; NULL: @op has to wait, and is listed, or has failed. */
static struct clt_con *op_connection(struct clt_op *op)
{
	struct clt_io *io = op->io;
	struct clt_con *con = op_pick_con(op);
	int ready = con && op->ready ? op->ready(op) : 0, lost;

	if (con && !ready)
		return con;
	LOCK_SCOPE(&io->lock);
	/* RACE: the path may have come up, and woken the listed operations, since. */
	con = op_pick_con(op);
	ready = op->ready ? op->ready(op) : 0;
	if (con && !ready)
		return con;
	lost = !con && op->held && op->lost ? op->lost(op) : 0;
	op->listed = true;
	if (ready < 0)
		op_error(op, ready);
	else if (clt_op_is_handshake(op))
		op_error(op, -ECONNABORTED);	/* @op->via is gone */
	else if (lost < 0)
		op_error(op, lost);		/* the path to send the part again is gone, too */
	else if (!con && op->kind != CLT_OP_BOUND && atomic_load(&io->state) >= CLT_SESS_EXPIRED)
		op_error(op, -EIO);
	else if (list_empty(&op->up_link))
		list_add_tail(&io->up_waiters, &op->up_link);
	return NULL;
}

static uint32_t op_part_max(const struct clt_op *op)
{
	uint32_t max = op->part_max;

	if (op->buf && op->kind == CLT_OP_IO)
		max = MIN(max, atomic_load_explicit(&op->io->max_io_size, memory_order_relaxed));
	return max;
}

/* Cover the next part of @op with @slot. */
static void op_cut(struct clt_op *op, struct clt_slot *slot)
{
	uint64_t left = op->len - op->next_off;

	slot->off = op->next_off;
	slot->len = (uint32_t)MIN(left, (uint64_t)op_part_max(op));
	op->next_off += slot->len;
	if (op->next_off == op->len)
		op->stage = CLT_OP_CUT;
}

static struct clt_slot *op_slot(struct clt_op *op)
{
	struct clt_slot *ctl = clt_slot_ctl(op->io);
	unsigned n = op->io->slots.n;

	if (op->kind != CLT_OP_HANDSHAKE) {
		if (op->inflight && op->inflight >= MIN((unsigned)CLT_OP_PARTS, n / 4))
			return NULL;
		return clt_slot_get(op);
	}
	/* Nothing else is in flight where the only path is OPENING, so buf_id 0 is free. */
	assert(!ctl->op);
	ctl->op = op;
	return ctl;
}

/* Queue @slot, or, if the buf_id is in use, keep @slot to be sent later.  True if @slot is
 * queued. */
static bool op_queue(struct clt_op *op, struct clt_slot *slot)
{
	if (!clt_slot_enter(op, slot)) {
		slot->next = op->held;
		op->held = slot;
		return false;
	}
	op->inflight++;
	clt_mem_fill(slot, op->con->att);
	clt_tx_queue(op->con, slot);
	return true;
}

/* Will whoever leads @con send what is queued there, before it sleeps? */
static bool will_be_sent(struct clt_con *con)
{
	const struct clt_wait_ops *wait = con->att->io->wait;

	return clt_wait_con_awake(&con->wait) || (wait->con_gathers && wait->con_gathers(con));
}

static void op_send(struct clt_op *op)
{
	struct clt_con *con;
	struct clt_slot *slot;

	if (!op->held && op->stage == CLT_OP_CUT)
		return;
	con = op_connection(op);
	if (!con)
		return;
	assert(!op->inflight || con == op->con);
	/* RACE: slot_invalidated() reads @con while parts are in flight. */
	if (op->con != con)
		op->con = con;
	while ((slot = op->held)) {
		op->held = slot->next;
		if (!op_queue(op, slot))
			break;
	}
	while (!op->held && op->stage == CLT_OP_CUTS && (slot = op_slot(op))) {
		op_cut(op, slot);
		op_queue(op, slot);
	}
	if (con->cid == 0 || !will_be_sent(con))
		clt_tx_flush(con);
}

/* @op begins to wait, or ends waiting. */
static void op_waits(struct clt_op *op, bool waits)
{
	uint64_t now = clock_now_ns();

	if (!waits)
		op->waited_ns += now - op->waits_since_ns;
	op->waits_since_ns = waits ? now : 0;
}

bool clt_op_step(struct clt_op *op)
{
	bool waits;

	op_take_finished(op);
	if (op->stage == CLT_OP_RESTARTS && !op->inflight)
		op_restart(op);
	if (!op->status && op->stage != CLT_OP_RESTARTS)
		op_send(op);
	waits = !op->inflight && !op->status && (op->held || op->stage != CLT_OP_CUT);
	if (waits != !!op->waits_since_ns)
		op_waits(op, waits);
	if (waits || op->inflight)
		return false;
	op_give_up_held(op);
	op_leave_lists(op);
	clt_wait_fini(&op->waiter);
	return true;
}

void clt_op_run(struct clt_op *op)
{
	while (!clt_op_step(op))
		clt_wait_more(&op->waiter, op->inflight ? op->con : NULL);
}
