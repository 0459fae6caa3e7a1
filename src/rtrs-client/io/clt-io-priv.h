/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the request engine (clt-io.h): clt-op.c, clt-slot.c, clt-mem.c, clt-key.c,
 * clt-pick.c, clt-tx.c, clt-rx.c, clt-wait-threads.c. */
#ifndef CLT_IO_PRIV_H
#define CLT_IO_PRIV_H

#include <assert.h>

#include "clt-io.h"
#include "clt-reg.h"

/* ---- a slot ----
 * It belongs to the operation that holds it, from clt_slot_get() to clt_slot_put().  Between
 * clt_tx_queue() and its push to clt_op.finished it is in flight and only the thread that has the
 * send lock or the poll role of its connection may touch it. */

/* clt_slot.state: what the request still waits for, and clt_con.key of where it is in flight. */
#define CLT_SLOT_ANSWER 0x1u
#define CLT_SLOT_SENT 0x2u		/* a send completion: its source is the caller's buffer */
#define CLT_SLOT_POST 0x4u		/* the post it is in, which reads its memory; with posted()
					 * (below) */
#define CLT_SLOT_INV 0x8u		/* our invalidate of its window */
#define CLT_SLOT_WAITS 0xfu
#define CLT_SLOT_KEY_SHIFT 4

struct clt_slot {
	uint32_t id;			/* buf_id and msg_id of its request */
	struct clt_op *op;
	struct clt_slot *next;		/* send list, then op->finished, then op->held */
	atomic_uint state;		/* 0: not in flight */
	int status;			/* 0, negative errno of the server, CLT_AGAIN,
					 * CLT_TOO_LARGE */
	unsigned epoch;			/* of the session when it was posted */
	unsigned nsent;			/* of its connection when it was posted */
	/* Grows with each time that something is sent under this buf_id, in serial number
	 * arithmetic and without 0: the server tells by it which of two copies, from two paths, is
	 * the older (doc/decisions.md D6). */
	uint32_t tag;
	bool posted;			/* and not answered since, on that or an earlier path */
	unsigned path;			/* clt_attempt.index of where it was posted last */
	/* the part of the operation it carries */
	uint64_t off;
	uint32_t len;
	/* what is posted */
	struct fab_cqe cqe;
	struct rtrs_wr_req w;
	struct frwr *window;		/* NULL: none */
	struct frwr_entry entry;	/* of @window: its bind and @w, then its invalidate */
	uint8_t hdr[RTRS_HDR_MAX] __attribute__((aligned(8)));
};

/* The control slot. */
static inline struct clt_slot *clt_slot_ctl(struct clt_io *io)
{
	return &io->slots.slot[io->slots.n];
}

/* clt_slot_get() when none is there at once, or for a user message. */
struct clt_slot *clt_slot_line(struct clt_op *op);
/* clt_slot_put() of permit 0 and of the control slot. */
void clt_slot_put_zero(struct clt_io *io, struct clt_slot *slot);
/* clt_slot_enter() and clt_slot_exit() of a request of IO with permit 0. */
bool clt_slot_zero_enter(struct clt_op *op);
/* buf_id 0 is no longer in flight: let the others that wait for it look. */
void clt_slot_zero_exit(struct clt_io *io);
/* Leave the line and give back what was granted and not used. */
void clt_slot_leave(struct clt_op *op);
/* Permits that became usable go to those in line. */
void clt_slot_regrant(struct clt_io *io);

/* Take a free permit with its slot, or NULL. Any thread. */
static inline struct clt_slot *clt_slot_take(struct clt_slot_table *s)
{
	unsigned limit = atomic_load_explicit(&s->limit, memory_order_relaxed);
	int bit;

	if (limit == 1)
		return atomic_exchange(&s->zero_taken, true) ? NULL : &s->slot[0];
	bit = bitmap_get(&s->permits);
	if (bit < 0)
		return NULL;
	if ((unsigned)bit + 1 >= limit) {
		bitmap_put(&s->permits, (unsigned)bit);
		return NULL;
	}
	return &s->slot[bit + 1];
}

/* A permit for @op now, or NULL and @op stands in line: then it is told to look (clt-wait.h)
 * when one was laid into op->granted for it.  First come, first served, but user messages first.
 * Owner of @op. */
static inline struct clt_slot *clt_slot_get(struct clt_op *op)
{
	struct clt_slot_table *s = &op->io->slots;
	struct clt_slot *slot = NULL;

	if (op->kind == CLT_OP_IO && !op->listed &&
	    !atomic_load_explicit(&s->nwaiting, memory_order_relaxed))
		slot = clt_slot_take(s);
	if (!slot)
		slot = clt_slot_line(op);
	if (slot) {
		slot->op = op;
		slot->status = 0;
		slot->posted = false;
	}
	return slot;
}

/* Give it back; hands it to the first in line.  Owner. */
static inline void clt_slot_put(struct clt_io *io, struct clt_slot *slot)
{
	assert(atomic_load_explicit(&slot->state, memory_order_relaxed) == 0);
	if (!slot->id) {
		clt_slot_put_zero(io, slot);
		return;
	}
	slot->op = NULL;
	bitmap_put(&io->slots.permits, slot->id - 1);
	/* ORDER: the bit is free before the count is read; clt_slot_line() counts before it looks
	 * again. */
	if (atomic_fetch_add(&io->slots.nwaiting, 0))
		clt_slot_regrant(io);
}

/* Is @slot that of a request of IO with permit 0, which has its buf_id in turns with user
 * messages? */
static inline bool clt_slot_is_zero(struct clt_io *io, const struct clt_slot *slot)
{
	return !slot->id && slot != clt_slot_ctl(io);
}

/* May @slot be sent now?  If not, its buf_id is in flight for another, and @op is told to look when
 * that has ended.  Owner. */
static inline bool clt_slot_enter(struct clt_op *op, const struct clt_slot *slot)
{
	return !clt_slot_is_zero(op->io, slot) || clt_slot_zero_enter(op);
}

/* What clt_slot_enter() let pass is not in flight any more.  Owner. */
static inline void clt_slot_exit(struct clt_op *op, const struct clt_slot *slot)
{
	if (clt_slot_is_zero(op->io, slot))
		clt_slot_zero_exit(op->io);
}

/* ---- memory of a request ---- */

/* Copy a WRITE's data to where the device reads it, a READ's from where it wrote.  Owner. */
void clt_mem_copy_in(struct clt_slot *slot, struct clt_attempt *att);
/* Copy the data that a READ has brought from the slot's memory to the caller's buffer. */
void clt_mem_copy_out(struct clt_slot *slot, struct clt_attempt *att);
/* Make @slot's part of the buffer reachable: fills @data for a WRITE, @req's descriptor for a READ.
 * With windows clt_key_chain() is to follow.  Under the send lock of its connection.  0 or
 * -errno. */
int clt_mem_map(struct clt_slot *slot, struct clt_attempt *att, struct ibv_sge *data,
		struct rtrs_req *req);
/* With CLT_MEM_REREG: @slot's key. */
static inline struct frwr *clt_mem_key(const struct clt_slot *slot, const struct clt_attempt *att)
{
	return frwr_at(att->keys, (unsigned)(slot - att->io->slots.slot));
}

static inline bool clt_mem_has_data(const struct clt_slot *slot, enum rtrs_dir dir)
{
	return slot->op->dir == dir && slot->op->buf && slot->len;
}

/* @slot is about to be queued.  Owner. */
static inline void clt_mem_fill(struct clt_slot *slot, struct clt_attempt *att)
{
	if (att->way == CLT_MEM_BOUNCE && clt_mem_has_data(slot, RTRS_DIR_WRITE))
		clt_mem_copy_in(slot, att);
}

/* @slot was answered with success.  Owner. */
static inline void clt_mem_fetch(struct clt_slot *slot, struct clt_attempt *att)
{
	if (att->way == CLT_MEM_BOUNCE && clt_mem_has_data(slot, RTRS_DIR_READ))
		clt_mem_copy_out(slot, att);
}

/* No peer reaches the caller's buffer any more when this returns.  Owner, not in flight;
 * idempotent. */
static inline void clt_mem_unmap(struct clt_slot *slot, struct clt_attempt *att)
{
	if (att->way == CLT_MEM_REREG && clt_mem_has_data(slot, RTRS_DIR_READ))
		frwr_map_end(clt_mem_key(slot, att));
}

/* Local key of slot->hdr.  Under the send lock. */
static inline uint32_t clt_mem_hdr_lkey(const struct clt_attempt *att)
{
	return att->way == CLT_MEM_BOUNCE ? att->slots_mr->lkey : att->dma_lkey;
}

/* ---- windows for the data of READs, where the attempt has them (clt-reg.h) ----
 * A window belongs to a slot, as the library says (frwr.h).  A READ with one is finished when three
 * things have happened, each on whichever thread: its answer came, posted() of its bind has run
 * (CLT_SLOT_POST), and where the server did not do it our invalidate is through (CLT_SLOT_INV).
 *
 * Windows belong to one attempt: made when all its connections are there, given back when
 * these have drained and before they are destroyed. */

/* Open [iova, iova + slot->len) of @mr, as that calls it, with @slot's window: @handle is what the
 * server is told, and it is to be asked to invalidate the key when @ask.  Under the send lock.  0
 * or -errno; -ENOTCONN, at any time: what an earlier READ had bound was flushed, so the connection
 * has failed. */
int clt_key_map(struct clt_slot *slot, struct clt_attempt *att, struct ibv_mr *mr, uint64_t iova,
		struct frwr_handle *handle, bool *ask);
/* Put the bind in front of slot->w, both in slot->entry, to be posted on @con.  Under the send
 * lock.  0, or -ENOTCONN as above and the slot has no window. */
int clt_key_chain(struct clt_slot *slot, struct clt_con *con);
/* The answer came, and says whether its window was taken away: -EPROTO if it says so and it was
 * not, 0 if it was, 1 when that is left to us.  Poll role. */
int clt_key_answered(struct clt_slot *slot, bool invalidated);
/* Fill slot->entry with what takes its window away; @done as in frwr_fill_unmap(), with @slot.  0,
 * or -EALREADY: it is away, or -ENOTCONN: the connection has failed.  Send lock or poll role. */
int clt_key_unmap(struct clt_slot *slot, struct clt_con *con, frwr_done_fn *done);
/* A receive with an invalidate.  False: it was not what we asked for.  Poll role. */
bool clt_key_reminv(struct clt_con *con, const struct ibv_wc *wc);

/* ---- a connection, to the server (clt-tx.c) ---- */

/* @slot is about to be posted on @con, with @len bytes of data.  Send lock. */
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

/* Put @slot on the list of @con; then clt_tx_flush().  Any thread. */
void clt_tx_queue(struct clt_con *con, struct clt_slot *slot);
/* Back from @con to its owner.  Nothing of @slot or its operation may be touched afterwards. */
void clt_tx_finish(struct clt_con *con, struct clt_slot *slot, int status);
/* The server has answered and left @slot's window to us.  Send lock or poll role. */
void clt_tx_invalidate(struct clt_con *con, struct clt_slot *slot);
/* @what has completed with a bad status: tell the owner. */
void clt_tx_wc_fail(struct clt_con *con, const char *what, const struct ibv_wc *wc);

#endif
