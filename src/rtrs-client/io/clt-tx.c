/* SPDX-License-Identifier: BSD-3-Clause */
/* The send half of a connection: requests to the fabric, and back to their operations.  clt-rx.c
 * has the answers of the server.
 *
 * The happy path: clt_tx_queue() puts a slot on the queue; clt_tx_flush(), on any thread,
 * serialised by the send lock, takes the whole queue; slot_encode() writes each message and maps
 * its memory; con_send() posts one chain; clt_tx_finish() gives a slot back when its answer has
 * come, and what else it waits for: the post, the send completion of the caller's memory, the
 * invalidate of its window.
 *
 * Possible failures: clt_tx_fail() reports the failure of a connection to the owner, and does
 * nothing more: clt_tx_fail_over() gives the requests back when the connections have drained.  A
 * request that does not fit the path comes back with CLT_TOO_LARGE.  Never blocks. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "clt-io-priv.h"
#include "counter.h"

/* ---- slots on their way ---- */

static void slot_push(_Atomic(struct clt_slot *) *head, struct clt_slot *slot)
{
	struct clt_slot *old = atomic_load_explicit(head, memory_order_relaxed);

	do {
		slot->next = old;
	} while (!atomic_compare_exchange_weak(head, &old, slot));
}

/* Take all slots of @head, oldest first. */
static struct clt_slot *slot_take_all(_Atomic(struct clt_slot *) *head)
{
	struct clt_slot *slot = atomic_exchange(head, NULL), *list = NULL;

	while (slot) {
		struct clt_slot *next = slot->next;

		slot->next = list;
		list = slot;
		slot = next;
	}
	return list;
}

void clt_tx_finish(struct clt_con *con, struct clt_slot *slot, int status)
{
	struct clt_op *op = slot->op;

	PROBE3(request__finished, con->key, slot->id, status);
	atomic_store_explicit(&slot->state, 0, memory_order_relaxed);
	slot->status = status;
	atomic_fetch_sub(&con->inflight, 1);
	slot_push(&op->finished, slot);
	clt_wait_count(&op->waiter);
}

/* The connection of @att on which @slot is in flight, or NULL. */
static struct clt_con *slot_con(struct clt_attempt *att, const struct clt_slot *slot)
{
	unsigned state = atomic_load_explicit(&slot->state, memory_order_acquire);
	unsigned key = state >> CLT_SLOT_KEY_SHIFT;

	if (!state || key < att->cons[0].key || key > att->cons[att->ncons - 1].key)
		return NULL;
	return &att->cons[key - att->cons[0].key];
}

/* ---- failure ---- */

void clt_tx_fail(struct clt_con *con, int err, const char *fmt, ...)
{
	char cause[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, sizeof(cause), fmt, ap);
	va_end(ap);
	con->att->ops->failed(con, err, cause);
}

void clt_tx_lost(struct clt_con *con)
{
	const char *cause = fab_conn_cause(con->fab);

	clt_tx_fail(con, -ECONNRESET, "connection %u: %s", con->cid,
		    *cause ? cause : "a request was flushed");
}

/* The first failure of a connection has a cause; flushes only follow. */
void clt_tx_wc_fail(struct clt_con *con, const char *what, const struct ibv_wc *wc)
{
	const char *cause = fab_conn_cause(con->fab);

	if (*cause)
		clt_tx_fail(con, -ECONNRESET, "connection %u: %s", con->cid, cause);
	else
		clt_tx_fail(con, -ECONNRESET, "connection %u: %s completed with status %d",
			    con->cid, what, (int)wc->status);
}

/* ---- sending ---- */

static void slot_sent(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct clt_slot *slot = container_of(cqe, struct clt_slot, cqe);
	struct clt_con *con = fab_conn_context(conn);
	unsigned state;

	/* If the request was not signaled, the slot may carry another request by now. */
	if (wc->status != IBV_WC_SUCCESS) {
		clt_tx_wc_fail(con, "a request", wc);
		return;
	}
	state = atomic_fetch_and(&slot->state, ~CLT_SLOT_SENT);
	assert(state & CLT_SLOT_SENT);
	if (!(state & CLT_SLOT_ANSWER)) {
		atomic_fetch_sub(&con->unsent, 1);
		clt_tx_finish(con, slot, slot->status);
	}
}

/* Put the digest of @req behind the @len bytes of its message; returns the new length. */
static uint32_t slot_seal(struct clt_slot *slot, const struct clt_attempt *att,
			  const struct rtrs_req *req, uint32_t len)
{
	__be32 imm = rtrs_imm_io_req(&att->geom, slot->id, req->data_len + req->usr_len);
	bool is_write = req->dir == RTRS_DIR_WRITE && req->data_len;

	return (uint32_t)rtrs_digest_seal(slot->hdr, len, imm,
					  is_write ? clt_mem_data(slot, att) : NULL,
					  is_write ? req->data_len : 0);
}

static int slot_encode(struct clt_slot *slot, struct clt_con *con)
{
	struct clt_attempt *att = con->att;
	struct clt_op *op = slot->op;
	struct rtrs_req req = { .dir = op->dir, .data_len = op->buf ? slot->len : 0 };
	struct ibv_sge data = { 0 }, hdr;
	bool source = false, wait;
	unsigned waits = CLT_SLOT_ANSWER;
	int r;

	slot->window = NULL;
	if (slot->id >= att->depth || req.data_len > att->max_io)
		return CLT_TOO_LARGE;
	slot->tag += slot->tag == UINT32_MAX ? 2 : 1;
	req.usr_len = (uint16_t)op->encode(op, slot->off, slot->len, slot->tag, slot->hdr);
	if (req.data_len) {
		r = clt_mem_map(slot, att, &data, &req);
		/* The bind of the slot's last READ, which had long been answered, was flushed.  The
		 * completion with the cause of the failure is yet to come. */
		if (r == -ENOTCONN) {
			clt_tx_lost(con);
			return CLT_AGAIN;
		}
		if (r < 0)
			return r;
		source = !req.has_desc;
	}
	hdr.addr = (uintptr_t)slot->hdr;
	hdr.length = (uint32_t)rtrs_req_encode(&req, slot->hdr);
	if (att->digest == CLT_DIGEST_ON)
		hdr.length = slot_seal(slot, att, &req, hdr.length);
	hdr.lkey = clt_mem_hdr_lkey(att);
	slot->cqe.done = slot_sent;
	/* The caller's buffer goes back to the caller, so the device must not read the buffer any
	 * more.  Memory of the client needs no send completion: after the answer, which follows the
	 * whole request, the device may send again only a duplicate.  The server's device drops
	 * duplicates, whatever the bytes are by now. */
	wait = source && att->way != CLT_MEM_BOUNCE;
	rtrs_wr_request(&slot->w, (uintptr_t)&slot->cqe, wait, &att->geom, slot->id,
			&att->rbufs[slot->id], &req, source ? &data : NULL, &hdr);
	if (slot->window && clt_key_chain(slot, con) < 0) {
		clt_tx_lost(con);
		return CLT_AGAIN;
	}
	slot->epoch = att->io->epoch;
	slot->nsent = con->nsent++;
	slot->sent_ms = con->sent_ms;
	clt_tx_count(con, slot, op->dir, req.data_len);
	slot->path = att->index;
	slot->posted = true;
	/* RACE: a server can answer a request before the request was sent.  The next owner of the
	 * slot would then write memory that the post still reads.  A send completion never comes
	 * before the post. */
	waits |= wait ? CLT_SLOT_SENT : CLT_SLOT_POST;
	PROBE3(request__sent, con->key, slot->id, req.data_len);
	atomic_store_explicit(&slot->state, con->key << CLT_SLOT_KEY_SHIFT | waits,
			      memory_order_release);
	return 0;
}

/* ---- windows (clt-key.c) ---- */

/* The invalidate of a slot's window is through, or failed with @rc.  From a handler, or posted()
 * under the send lock. */
static void slot_invalidated(void *arg, int rc)
{
	struct clt_slot *slot = arg;
	struct clt_con *con = slot->op->con;

	if (rc) {
		clt_tx_lost(con);		/* @slot comes back when @con has drained */
		return;
	}
	atomic_fetch_sub(&con->unsent, 1);
	clt_tx_finish(con, slot, slot->status);
}

void clt_tx_invalidate(struct clt_con *con, struct clt_slot *slot)
{
	int r = clt_key_unmap(slot, con, slot_invalidated);

	if (r == -EALREADY) {
		clt_tx_finish(con, slot, slot->status);
	} else if (r < 0) {
		clt_tx_lost(con);		/* the bind was flushed; as above */
	} else {
		atomic_fetch_add(&con->unsent, 1);
		slot_push(&con->sendq, slot);
		atomic_store(&con->has_inv, true);
	}
}

/* @slot was posted, or failed with @err.  Send lock held. */
static void slot_posted(struct clt_con *con, struct clt_slot *slot, int err)
{
	bool request = atomic_load_explicit(&slot->state, memory_order_relaxed) & CLT_SLOT_POST;
	unsigned waits;

	if (slot->window)
		slot->entry.posted(&slot->entry, err);
	if (!request)
		return;			/* an invalidate; the owner may have @slot by now */
	/* RACE: the answer may have come first; the last of the events goes on with @slot. */
	waits = atomic_fetch_and(&slot->state, ~CLT_SLOT_POST) & CLT_SLOT_WAITS & ~CLT_SLOT_POST;
	if (!waits)
		clt_tx_finish(con, slot, slot->status);
	else if (waits == CLT_SLOT_INV)
		clt_tx_invalidate(con, slot);
}

/* Is @slot queued for the invalidate of the window, which is filled in already, and not for a
 * request? */
static bool slot_is_inv(const struct clt_slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_relaxed) & CLT_SLOT_INV;
}

/* Do not send @slot: give the request back with @status, or fail the invalidate. */
static void slot_refuse(struct clt_con *con, struct clt_slot *slot, int status)
{
	if (slot_is_inv(slot))
		slot->entry.posted(&slot->entry, -ENOTCONN);
	else
		clt_tx_finish(con, slot, status);
}

/* Must slot_posted() be called for @slot, which does not come back before? */
static bool slot_waits_for_post(const struct clt_slot *slot)
{
	return atomic_load_explicit(&slot->state,
				    memory_order_relaxed) & (CLT_SLOT_POST | CLT_SLOT_INV);
}

/* Append the work requests of @slot to a chain; returns the new end. */
static struct ibv_send_wr **slot_chain(struct clt_slot *slot, struct ibv_send_wr **tail)
{
	if (!slot->window) {
		*tail = &slot->w.wr;
		return &slot->w.wr.next;
	}
	*tail = slot->entry.first;
	return &slot->entry.last->next;
}

/* Post @list as a chain; slots that cannot be sent are refused.  Send lock held. */
static void con_send(struct clt_con *con, struct clt_slot *list)
{
	struct ibv_send_wr *head = NULL, **tail = &head;
	struct clt_slot *next, *posts = NULL, **last = &posts;
	int err;

	con->sent_ms = clock_now_ms();
	for (struct clt_slot *slot = list; slot; slot = next) {
		int r = !con->open ? CLT_AGAIN : slot_is_inv(slot) ? 0 : slot_encode(slot, con);

		next = slot->next;
		if (r) {
			slot_refuse(con, slot, r);
			continue;
		}
		tail = slot_chain(slot, tail);
		if (slot_waits_for_post(slot)) {
			*last = slot;
			last = &slot->next;
		}
	}
	*last = NULL;
	if (!head)
		return;
	err = fab_post_send(con->fab, head);
	for (struct clt_slot *slot = posts; slot; slot = next) {
		next = slot->next;
		slot_posted(con, slot, err);
	}
	if (err < 0)
		clt_tx_lost(con);
	else if (con->cid == 0)
		con->att->ops->posted(con);
	else if (clt_tx_must_poll(con))
		con->att->io->wait->con_kick(con);
}

/* Lock and unlock both exchange.  So the unlocking thread sees all slots that other threads had
 * pushed before failing to get the lock. */
static bool send_trylock(struct clt_con *con)
{
	return atomic_exchange(&con->send_lock, 1) == 0;
}

static void send_unlock(struct clt_con *con)
{
	atomic_exchange(&con->send_lock, 0);
}

void clt_tx_queue(struct clt_con *con, struct clt_slot *slot)
{
	PROBE3(request__queued, con->key, slot->id, slot->len);
	atomic_fetch_add(&con->inflight, 1);
	slot_push(&con->sendq, slot);
}

void clt_tx_flush(struct clt_con *con)
{
	while (atomic_load(&con->sendq) && send_trylock(con)) {
		clt_wait_batch_begin(con->att->io->wait);
		con_send(con, slot_take_all(&con->sendq));
		send_unlock(con);
		clt_wait_batch_end(con->att->io->wait);
	}
}

void clt_tx_seal(struct clt_con *con)
{
	while (!send_trylock(con))
		sched_yield();	/* a post never blocks */
	clt_wait_batch_begin(con->att->io->wait);
	con->open = false;
	/* ORDER: before another thread can have the lock.  That thread would still hold an
	 * invalidate while the caller gives the window back. */
	con_send(con, slot_take_all(&con->sendq));
	send_unlock(con);
	clt_wait_batch_end(con->att->io->wait);
	clt_tx_flush(con);
}

void clt_tx_unseal(struct clt_con *con)
{
	while (!send_trylock(con))
		sched_yield();
	con->open = true;
	send_unlock(con);
	clt_tx_flush(con);
}

/* ---- the end of an attempt ---- */

static void slot_fail_over(struct clt_slot *slot, struct clt_attempt *att)
{
	unsigned state = atomic_load_explicit(&slot->state, memory_order_relaxed);

	/* If only the send completion, or the invalidate, was flushed, the answer counts. */
	clt_tx_finish(slot_con(att, slot), slot,
		      state & CLT_SLOT_ANSWER ? CLT_AGAIN : slot->status);
}

/* By the order of sending on a connection. */
static int sent_before(const void *a, const void *b)
{
	const struct clt_slot *x = *(struct clt_slot *const *)a, *y = *(struct clt_slot *const *)b;

	return (int)(x->nsent - y->nsent);
}

uint64_t clt_tx_fail_over(struct clt_attempt *att)
{
	const struct clt_slot_table *slots = &att->io->slots;
	uint64_t now_ms = clock_now_ms(), oldest_ms = 0;
	unsigned n = 0;

	clt_wait_batch_begin(att->io->wait);
	for (unsigned i = 0; i < att->ncons; i++)
		atomic_store(&att->cons[i].unsent, 0);
	for (unsigned i = 0; slots->slot && i <= slots->n; i++) {
		struct clt_slot *slot = &slots->slot[i];

		if (!slot_con(att, slot))
			continue;
		slots->order[n++] = slot;
		oldest_ms = MAX(oldest_ms, now_ms - slot->sent_ms);
	}
	if (n)
		qsort(slots->order, n, sizeof(struct clt_slot *), sent_before);
	for (unsigned i = 0; i < n; i++)
		slot_fail_over(slots->order[i], att);
	clt_wait_batch_end(att->io->wait);
	return oldest_ms;
}
