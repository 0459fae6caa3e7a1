/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the request engine (clt-io.h): clt-op.c, clt-slot.c, clt-mem.c,
 * clt-key.c, clt-pick.c, clt-tx.c, clt-rx.c, clt-wait-threads.c. */
#ifndef CLT_IO_PRIV_H
#define CLT_IO_PRIV_H

#include <assert.h>

#include "clt-io.h"
#include "clt-key.h"
#include "share.h"

/* ---- a slot ----
 * A slot belongs to an operation, from clt_slot_get() to clt_slot_put().  Between clt_tx_queue()
 * and the push to clt_op.finished the slot is in flight.  Then only the thread with the send lock
 * or the poll role of the connection may touch the slot. */

/* clt_slot.state: events for which the request still waits, and clt_con.key of the connection on
 * which the request is in flight. */
#define CLT_SLOT_ANSWER 0x1u
#define CLT_SLOT_SENT 0x2u		/* a send completion: the source is the caller's buffer */
#define CLT_SLOT_POST 0x4u		/* the end of the post, which reads the slot's memory, and
					 * posted() (below) */
#define CLT_SLOT_INV 0x8u		/* the client's invalidate of the window */
#define CLT_SLOT_WAITS 0xfu
#define CLT_SLOT_KEY_SHIFT 4

struct clt_slot {
	uint32_t id;			/* buf_id and msg_id of the request */
	struct clt_op *op;
	struct clt_slot *next;		/* send list, then op->finished, then op->held */
	atomic_uint state;		/* 0: not in flight */
	int status;			/* 0, negative errno of the server, CLT_AGAIN,
					 * CLT_TOO_LARGE */
	unsigned epoch;			/* of the session at the post */
	unsigned nsent;			/* of the connection at the post */
	uint64_t sent_ms;		/* time of the last post */
	/* clt_op.of and clt_op.began_ns, for clt_io_each_age() on another thread; 0: no operation
	 * that counts */
	_Atomic(const void *) of;
	atomic_ullong began_ns;
	/* Grows each time something is sent under this buf_id, in serial number arithmetic and
	 * without 0.  The server tells by the tag which of two copies, from two paths, is the older
	 * (doc/decisions.md D6). */
	uint32_t tag;
	bool posted;			/* and not answered since, on @path or an earlier path */
	unsigned path;			/* clt_attempt.index of the last post */
	/* the part of the operation */
	uint64_t off;
	uint32_t len;
	/* CLT_MEM_BOUNCE: the first @used bytes of the memory are of @user (clt_op.user); 0: of
	 * several */
	uint64_t user;
	uint32_t used;
	/* the work requests to post */
	struct fab_cqe cqe;
	struct rtrs_wr_req w;
	struct frwr *window;		/* NULL: none */
	struct frwr_entry entry;	/* of @window: the bind and @w, then the invalidate */
	uint8_t hdr[RTRS_HDR_MAX] __attribute__((aligned(8)));
};

/* The control slot: for user messages, and a HANDSHAKE borrows the slot without a permit. */
static inline struct clt_slot *clt_slot_ctl(struct clt_io *io)
{
	return &io->slots.slot[io->slots.n];
}

/* clt_slot_get() when no permit is free at once, or for a user message. */
struct clt_slot *clt_slot_line(struct clt_op *op);
/* clt_slot_put() of the control slot. */
void clt_slot_put_ctl(struct clt_io *io);
/* clt_slot_enter() of a request of IO with permit 0. */
bool clt_slot_zero_enter(struct clt_op *op);
/* clt_slot_exit(): buf_id 0 is no longer in flight, so user messages in line look again. */
void clt_slot_zero_exit(struct clt_io *io);
/* Leave the line, and give back permits that were granted and not used. */
void clt_slot_leave(struct clt_op *op);
/* Give permits that became usable to the operations in line. */
void clt_slot_regrant(struct clt_io *io);
/* A permit is free, and operations stand in line: clt_slot_regrant(), or at the end of the pass if
 * this thread is in one (clt_pass_begin()). */
void clt_slot_freed(struct clt_io *io);

/* Take a free permit: returns the slot of the permit, or NULL.  Any thread. */
static inline struct clt_slot *clt_slot_take(struct clt_slot_table *s)
{
	unsigned limit = atomic_load_explicit(&s->limit, memory_order_relaxed);
	int bit = -1;

	if (limit == 1) {
		if (atomic_exchange(&s->zero_taken, true))
			return NULL;
	} else {
		bit = bitmap_get(&s->permits);
		if (bit < 0)
			return NULL;
		if ((unsigned)bit + 1 >= limit) {
			bitmap_put(&s->permits, (unsigned)bit);
			return NULL;
		}
	}
	atomic_fetch_add(&s->ntaken, 1);
	return &s->slot[bit + 1];
}

/* Undo clt_slot_take(); whoever may take the permit of @slot now is to be asked next. */
static inline void clt_slot_untake(struct clt_slot_table *s, struct clt_slot *slot)
{
	if (slot->id)
		bitmap_put(&s->permits, slot->id - 1);
	else
		atomic_store(&s->zero_taken, false);
	atomic_fetch_sub(&s->ntaken, 1);
}

/* The number of permits of IO. */
static inline unsigned clt_slot_most(const struct clt_slot_table *s)
{
	unsigned limit = atomic_load_explicit(&s->limit, memory_order_relaxed);

	return limit == 1 ? 1 : limit - 1;
}

/* The number of permits that IO may take now, if no more were its share.  Others take and give back
 * meanwhile; while a lower limit begins to hold it may be too small.  Any thread. */
static inline unsigned clt_slot_nfree(const struct clt_slot_table *s)
{
	unsigned most = clt_slot_most(s), taken = atomic_load(&s->ntaken);

	return taken < most ? most - taken : 0;
}

/* ---- accounts (clt-account.h) ---- */

/* May @a, which holds @held permits, get one of the @nfree that are free? */
static inline bool clt_account_may_take(const struct clt_account *a, unsigned held, unsigned nfree)
{
	const struct clt_io *io = a->io;
	uint64_t reserve;

	if (!held)			/* at depth 1 each time: nothing is to be computed */
		return nfree;
	reserve = share_reserve(clt_slot_most(&io->slots), atomic_load(&io->nholders), 1);
	return atomic_load(&io->naccounts) == 1 ? share_may_take_alone(held, 1, nfree, reserve) :
						  share_may_take(held, 1, nfree, reserve);
}

/* Count a permit more of @a; returns how many @a had.  Any thread. */
static inline unsigned clt_account_count(struct clt_account *a)
{
	unsigned held = atomic_fetch_add(&a->held, 1);

	if (!held)
		atomic_fetch_add(&a->io->nholders, 1);
	return held;
}

/* Count a permit less of @a.  Any thread. */
static inline void clt_account_uncount(struct clt_account *a)
{
	if (atomic_fetch_sub(&a->held, 1) == 1)
		atomic_fetch_sub(&a->io->nholders, 1);
}

/* Take a permit for @a: returns its slot; NULL: none is free, or @a may hold no more now.  Any
 * thread. */
static inline struct clt_slot *clt_account_take(struct clt_account *a)
{
	struct clt_slot_table *s = &a->io->slots;
	unsigned held = atomic_load(&a->held), nfree = clt_slot_nfree(s), now, left;
	struct clt_slot *slot;

	if (!clt_account_may_take(a, held, nfree))
		return NULL;
	slot = clt_slot_take(s);
	if (!slot)
		return NULL;
	now = clt_account_count(a);
	left = clt_slot_nfree(s) + 1;
	/* RACE: others may have taken since.  Whoever gave back leaves the answer as it was. */
	if ((now <= held && left >= nfree) || clt_account_may_take(a, now, left))
		return slot;
	clt_account_uncount(a);
	clt_slot_untake(s, slot);
	return NULL;
}

/* Get the slot of a permit for @op now, or NULL and @op stands in line.  In line, @op is told to
 * look (clt-wait.h) when a slot was laid into op->granted.  Owner of @op. */
static inline struct clt_slot *clt_slot_get(struct clt_op *op)
{
	struct clt_slot_table *s = &op->io->slots;
	struct clt_slot *slot = NULL;

	if (op->kind == CLT_OP_IO && !op->listed &&
	    !atomic_load_explicit(&s->nwaiting, memory_order_relaxed))
		slot = clt_account_take(op->account);
	if (!slot)
		slot = clt_slot_line(op);
	if (slot) {
		slot->op = op;
		atomic_store_explicit(&slot->of, op->of, memory_order_release);
		atomic_store_explicit(&slot->began_ns, op->began_ns, memory_order_release);
		slot->status = 0;
		slot->posted = false;
	}
	return slot;
}

/* Give the permit of @slot, which @op has, back; operations in line get what became free.
 * Owner. */
static inline void clt_slot_put(struct clt_op *op, struct clt_slot *slot)
{
	struct clt_io *io = op->io;

	assert(atomic_load_explicit(&slot->state, memory_order_relaxed) == 0);
	if (slot == clt_slot_ctl(io)) {
		clt_slot_put_ctl(io);
		return;
	}
	slot->op = NULL;
	clt_slot_untake(&io->slots, slot);
	if (op->kind == CLT_OP_IO)
		clt_account_uncount(op->account);
	/* ORDER: the permit is free before the count is read; line_add() counts before the
	 * permits are looked at again. */
	if (atomic_fetch_add(&io->slots.nwaiting, 0))
		clt_slot_freed(io);
}

/* Is @slot the slot of a request of IO with permit 0, which takes turns with user messages in using
 * buf_id 0? */
static inline bool clt_slot_is_zero(struct clt_io *io, const struct clt_slot *slot)
{
	return !slot->id && slot != clt_slot_ctl(io);
}

/* May @slot be sent now?  If not, the buf_id is in flight for another request, and @op is told to
 * look when that request has ended.  Owner. */
static inline bool clt_slot_enter(struct clt_op *op, const struct clt_slot *slot)
{
	return !clt_slot_is_zero(op->io, slot) || clt_slot_zero_enter(op);
}

/* @slot, which clt_slot_enter() let pass, is not in flight any more.  Owner. */
static inline void clt_slot_exit(struct clt_op *op, const struct clt_slot *slot)
{
	if (clt_slot_is_zero(op->io, slot))
		clt_slot_zero_exit(op->io);
}

/* ---- memory of a request ---- */

/* Make the slot's memory the request's.  The data of a WRITE is copied in from the caller's buffer,
 * and the device reads it here.  For a READ bytes of other users are cleared, because a server may
 * answer without data.  A part that was cut for another path may have no place here, and is left as
 * it is, because @att does not send it.  Owner. */
void clt_mem_enter(struct clt_slot *slot, struct clt_attempt *att);
/* Copy the data of a READ from the slot's memory, where the device wrote, to the caller's buffer.
 * Owner. */
void clt_mem_copy_out(struct clt_slot *slot, struct clt_attempt *att);
/* Make @slot's part of the buffer reachable: fills @data for a WRITE, @req's descriptor for a READ.
 * With windows clt_key_chain() is to follow.  Under the send lock.  0 or -errno. */
int clt_mem_map(struct clt_slot *slot, struct clt_attempt *att, struct ibv_sge *data,
		struct rtrs_req *req);
/* The key of @slot, with CLT_MEM_REREG. */
static inline struct frwr *clt_mem_key(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return frwr_at(att->keys, (unsigned)(slot - att->io->slots.slot));
}

/* Does the request of @slot have direction @dir and data? */
static inline bool clt_mem_has_data(const struct clt_slot *slot, enum rtrs_dir dir)
{
	return slot->op->dir == dir && slot->op->buf && slot->len;
}

/* Prepare the memory of @slot, before @slot is queued, if the attempt copies.  Owner. */
static inline void clt_mem_fill(struct clt_slot *slot, struct clt_attempt *att)
{
	if (att->way == CLT_MEM_BOUNCE && clt_mem_has_data(slot, slot->op->dir))
		clt_mem_enter(slot, att);
}

/* Copy the data of a READ out, after @slot was answered with success, if the attempt copies.
 * Owner. */
static inline void clt_mem_fetch(struct clt_slot *slot, struct clt_attempt *att)
{
	if (att->way == CLT_MEM_BOUNCE && clt_mem_has_data(slot, RTRS_DIR_READ))
		clt_mem_copy_out(slot, att);
}

/* End the key of a READ: no peer reaches the caller's buffer any more when this returns.  Owner,
 * not in flight; idempotent. */
static inline void clt_mem_unmap(struct clt_slot *slot, struct clt_attempt *att)
{
	if (att->way == CLT_MEM_REREG && clt_mem_has_data(slot, RTRS_DIR_READ))
		frwr_map_end(clt_mem_key(slot, att));
}

/* The data of @slot, which it sends, or which has come.  Under the send lock, or poll role. */
const uint8_t *clt_mem_data(const struct clt_slot *slot, const struct clt_attempt *att);
/* Local key of slot->hdr.  Under the send lock. */
static inline uint32_t clt_mem_hdr_lkey(const struct clt_attempt *att)
{
	return att->way == CLT_MEM_BOUNCE ? att->slots_mr->lkey : att->dma_lkey;
}

/* ---- windows for the data of READs, where the attempt has them (clt-key.h) ----
 * A window belongs to a slot, by the rules of frwr.h.  A READ with a window is finished after three
 * events, each on any thread.  The answer came (CLT_SLOT_ANSWER); posted() of the bind has run
 * (CLT_SLOT_POST); the server or the client has invalidated the window (CLT_SLOT_INV).
 *
 * Windows belong to an attempt: made when all connections are established, given back when all
 * connections have drained and before these are destroyed. */

/* Open [iova, iova + slot->len), in addresses of @mr, with @slot's window.  @handle is for the
 * server; if @ask, the request is to ask the server to invalidate the key.  Under the send lock.  0
 * or -errno; -ENOTCONN, at any time: the bind of an earlier READ was flushed, so the connection has
 * failed. */
int clt_key_map(struct clt_slot *slot, struct clt_attempt *att, struct ibv_mr *mr, uint64_t iova,
		struct frwr_handle *handle, bool *ask);
/* Put the bind in front of slot->w, both in slot->entry, to be posted on @con.  Under the send
 * lock.  0, or -ENOTCONN as above and the slot has no window. */
int clt_key_chain(struct clt_slot *slot, struct clt_con *con);
/* The answer of @slot came; @invalidated: by the answer the server has invalidated the window.  0
 * if the window is invalid; 1 if the client is to invalidate the window; -EPROTO if the answer is
 * wrong.  Poll role. */
int clt_key_answered(struct clt_slot *slot, bool invalidated);
/* Fill slot->entry with the invalidate of the window; @done as in frwr_fill_unmap(), with @slot.
 * 0; -EALREADY: the window is invalid already; -ENOTCONN: the connection has failed.  Send lock or
 * poll role. */
int clt_key_unmap(struct clt_slot *slot, struct clt_con *con, frwr_done_fn *done);
/* Handle a receive with an invalidate.  False: no request has asked for this invalidate.  Poll
 * role. */
bool clt_key_reminv(struct clt_con *con, const struct ibv_wc *wc);

/* ---- a connection, to the server (clt-tx.c) ---- */

/* Count @slot, which is about to be posted on @con with @len bytes of data.  Send lock. */
static inline void clt_tx_count(struct clt_con *con, const struct clt_slot *slot, enum rtrs_dir dir,
				uint32_t len)
{
	if (slot->op->kind != CLT_OP_IO)
		return;
	if (len) {
		counter_add(&con->sent[dir], 1);
		counter_add(&con->sent_bytes[dir], len);
	}
	if (slot->posted && slot->path != con->att->index)
		counter_add(&con->failovers, 1);
}

/* Put @slot on the list of @con; clt_tx_flush() is to follow.  Any thread. */
void clt_tx_queue(struct clt_con *con, struct clt_slot *slot);
/* Give @slot back from @con to the owner.  Afterwards neither @slot nor the operation may be
 * touched. */
void clt_tx_finish(struct clt_con *con, struct clt_slot *slot, int status);
/* Invalidate the window of @slot, which the server has answered without an invalidate.  Send lock
 * or poll role. */
void clt_tx_invalidate(struct clt_con *con, struct clt_slot *slot);
/* Report a failure to the owner: @what has completed with the bad status of @wc. */
void clt_tx_wc_fail(struct clt_con *con, const char *what, const struct ibv_wc *wc);

#endif
