/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of NBD, of any offset and length: the cut of a request at blocks, and the range that a
 * writer holds.
 *
 * A request owns its place in the range lock and the block for its edges, both until the request is
 * DONE.  The owner's thread alone runs the request; other threads only call its function.  A
 * failure ends the request with the status of the failed IO. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dev-priv.h"
#include "dev-req.h"

/* ---- blocks ---- */

static uint64_t block_size(const struct dev *dev)
{
	return dev->info.logical_block_size;
}

/* End of the last block that [.., @off) touches; a device may end inside a block. */
static uint64_t block_end(const struct dev *dev, uint64_t off, uint64_t size)
{
	return MIN(align_up(off, block_size(dev)), size);
}

static bool req_is_aligned(const struct dev *dev, uint64_t off, uint64_t len)
{
	return ((off | len) & (block_size(dev) - 1)) == 0;
}

/* The next piece of @p; false at the end. */
static bool next_piece(const struct dev *dev, struct dev_pieces *p)
{
	uint64_t bs = block_size(dev);

	p->off += p->n;
	p->len -= p->n;
	if (!p->len)
		return false;
	p->whole = p->off % bs == 0 && p->len >= bs;
	if (p->whole) {
		p->n = align_down(p->len, bs);
		return true;
	}
	p->block = align_down(p->off, bs);
	p->block_len = block_end(dev, p->off + 1, p->size) - p->block;
	p->n = MIN(p->len, p->block + p->block_len - p->off);
	return true;
}

/* ---- waiters of a request ---- */

static void req_io_news(struct clt_waiter *w)
{
	struct clt_op *op = container_of(w, struct clt_op, waiter);
	struct dev_req *q = container_of(container_of(op, struct dev_io, clt), struct dev_req, io);

	q->fn(q);
}

static void range_news(struct clt_waiter *w)
{
	struct dev_req *q = container_of(w, struct dev_req, waiter);

	q->fn(q);
}

static void req_range_granted(struct range *r)
{
	clt_wait_look(&container_of(r, struct dev_req, range)->waiter);
}

/* ---- stages of a request ---- */

static void req_io(struct dev_req *q, enum dev_req_stage stage, enum rnbd_io_op op, uint32_t flags,
		   void *buf, uint64_t len, uint64_t off)
{
	q->stage = stage;
	dev_io_start(&q->io, q->h, op, flags, buf, len, off, q->fn ? req_io_news : NULL);
}

/* clt_io_hint(), asked once by each thread. */
static unsigned stat_hint(const struct dev *dev)
{
	static _Thread_local unsigned mine;	/* + 1 */

	if (!mine)
		mine = 1 + clt_io_hint(&dev->clt->sess.io);
	return mine - 1;
}

static void req_done(struct dev_req *q, int status)
{
	const struct clt_wait_ops *wait = q->h->dev->clt->sess.io.wait;

	if (q->range.granted) {
		clt_wait_batch_begin(wait);
		range_leave(&q->h->dev->ranges, &q->range);
		clt_wait_batch_end(wait);
	}
	free(q->block);
	q->block = NULL;
	q->status = status;
	q->stage = DEV_REQ_DONE;
	dev_stat_count(q->h->dev->stat, stat_hint(q->h->dev), q->what, status, q->len,
		       clock_measure_ns() - q->io.began_ns);
}

/* FUA of a discard. */
static void req_flush_behind(struct dev_req *q)
{
	req_io(q, DEV_REQ_FLUSHES, RNBD_OP_FLUSH, RNBD_F_SYNC | RNBD_F_FUA, NULL, 0, 0);
}

/* Begin the IO of the next piece, or end. */
static void req_next_piece(struct dev_req *q)
{
	struct dev_pieces *p = &q->pieces;

	if (!next_piece(q->h->dev, p)) {
		if (q->op == RNBD_OP_DISCARD && (q->flags & RNBD_F_FUA))
			req_flush_behind(q);
		else
			req_done(q, 0);
		return;
	}
	if (p->whole) {
		req_io(q, DEV_REQ_WHOLE, q->op, q->op == RNBD_OP_DISCARD ? 0 : q->flags,
		       q->buf ? q->buf + (p->off - q->begin) : NULL, p->n, p->off);
		return;
	}
	/* Zeroes, because a server may answer without data, and an edge of a WRITE goes back. */
	if (!q->block)
		q->block = calloc(1, block_size(q->h->dev));
	if (!q->block)
		req_done(q, -ENOMEM);
	else
		req_io(q, DEV_REQ_EDGE_READ, RNBD_OP_READ, RNBD_F_SYNC, q->block, p->block_len,
		       p->block);
}

/* The block of an edge has arrived. */
static void req_edge(struct dev_req *q)
{
	const struct dev_pieces *p = &q->pieces;
	uint8_t *piece = q->block + (p->off - p->block);

	if (q->op == RNBD_OP_READ) {
		memcpy(q->buf + (p->off - q->begin), piece, p->n);
		req_next_piece(q);
		return;
	}
	if (q->buf)
		memcpy(piece, q->buf + (p->off - q->begin), p->n);
	else
		memset(piece, 0, p->n);
	req_io(q, DEV_REQ_EDGE_WRITTEN, RNBD_OP_WRITE, q->flags & RNBD_F_FUA, q->block,
	       p->block_len, p->block);
}

static bool writes_piece(const struct dev_req *q)
{
	return q->stage == DEV_REQ_EDGE_WRITTEN ||
	       (q->stage == DEV_REQ_WHOLE && q->op != RNBD_OP_READ && q->op != RNBD_OP_FLUSH);
}

/* The first piece may be lost with the server's memory before the last is written, and a FLUSH may
 * have told of that loss meanwhile: the end of the last piece finds the loss again.  A piece with
 * FUA is durable. */
static void req_carry_epoch(struct dev_req *q)
{
	if (!writes_piece(q) || (q->flags & RNBD_F_FUA))
		return;
	q->epoch = MIN(q->epoch, q->io.clt.epoch);
	q->io.clt.epoch = q->epoch;
}

/* The IO under way has ended. */
static void req_io_ended(struct dev_req *q)
{
	/* A discard is only advice, and programs ignore its errors.  So the failure of its FUA does
	 * not count as told, and the next FLUSH tells of the loss. */
	int r;

	req_carry_epoch(q);
	r = q->stage == DEV_REQ_FLUSHES ? dev_io_end_untold(&q->io) : dev_io_end(&q->io);
	if (r < 0 && !q->io.clt.status && q->stage != DEV_REQ_FLUSHES)
		q->loss = DEV_REQ_TELLS_LOSS;
	dev_stat_queued(q->h->dev->stat, q->io.clt.hint, q->io.clt.waited_ns);
	if (r < 0 || q->stage == DEV_REQ_FLUSHES || q->op == RNBD_OP_FLUSH)
		req_done(q, r);
	else if (q->stage == DEV_REQ_EDGE_READ)
		req_edge(q);
	else
		req_next_piece(q);
}

bool dev_req_step(struct dev_req *q)
{
	while (q->stage != DEV_REQ_DONE) {
		if (q->stage == DEV_REQ_ENTERS) {
			if (!range_is_granted(&q->h->dev->ranges, &q->range))
				return false;
			clt_wait_fini(&q->waiter);
			req_next_piece(q);
			continue;
		}
		if (!clt_op_step(&q->io.clt))
			return false;
		req_io_ended(q);
	}
	return true;
}

/* ---- starts of requests ---- */

static void req_init(struct dev_req *q, struct dev_handle *h, enum io_stat_op what,
		     enum rnbd_io_op op, uint32_t flags, void *buf, uint64_t len, uint64_t off)
{
	q->h = h;
	q->what = what;
	q->op = op;
	q->flags = flags;
	q->range.granted = NULL;
	q->buf = buf;
	q->begin = off;
	q->len = len;
	q->io.began_ns = clock_measure_ns();
	q->block = NULL;
	q->epoch = UINT32_MAX;
	q->loss = DEV_REQ_NO_LOSS;
	q->pieces = (struct dev_pieces){ .size = dev_size(h->dev), .off = off, .len = len };
}

/* An unaligned request is checked here, a whole one by the server. */
static bool req_fits(struct dev_req *q)
{
	if (req_is_aligned(q->h->dev, q->begin, q->len) ||
	    range_ok(q->begin, q->len, q->pieces.size))
		return true;
	req_done(q, -EIO);
	return false;
}

/* A writer of a part of a block excludes all other writers of the block. */
static void req_enter(struct dev_req *q)
{
	struct dev *dev = q->h->dev;
	uint64_t off = q->pieces.off, end = off + q->pieces.len;
	bool whole = req_is_aligned(dev, off, q->pieces.len);

	q->range = (struct range){
		.start = whole ? off : align_down(off, block_size(dev)),
		.end = whole ? end : block_end(dev, end, q->pieces.size),
		.exclusive = !whole,
		.granted = req_range_granted,
	};
	clt_wait_init(&q->waiter, dev->clt->sess.io.wait, q->fn ? range_news : NULL);
	q->stage = DEV_REQ_ENTERS;
	if (range_enter(&dev->ranges, &q->range))
		req_next_piece(q);
}

void dev_req_read(struct dev_req *q, struct dev_handle *h, void *buf, uint32_t len, uint64_t off)
{
	req_init(q, h, IO_STAT_READ, RNBD_OP_READ, RNBD_F_SYNC, buf, len, off);
	if (req_fits(q))
		req_next_piece(q);
}

void dev_req_write(struct dev_req *q, struct dev_handle *h, const void *buf, uint32_t len,
		   uint64_t off, bool fua)
{
	uint32_t flags = fua ? RNBD_F_FUA : 0;

	req_init(q, h, IO_STAT_WRITE, RNBD_OP_WRITE, flags, (void *)buf, len, off);
	if (req_fits(q))
		req_enter(q);
}

void dev_req_flush(struct dev_req *q, struct dev_handle *h)
{
	req_init(q, h, IO_STAT_FLUSH, RNBD_OP_FLUSH, RNBD_F_SYNC | RNBD_F_FUA, NULL, 0, 0);
	req_io(q, DEV_REQ_WHOLE, q->op, q->flags, NULL, 0, 0);
}

void dev_req_discard(struct dev_req *q, struct dev_handle *h, uint64_t len, uint64_t off, bool fua)
{
	uint64_t start = align_up(off, block_size(h->dev));
	uint64_t end = align_down(off + len, block_size(h->dev));

	req_init(q, h, IO_STAT_DISCARD, RNBD_OP_DISCARD, fua ? RNBD_F_FUA : 0, NULL, len, off);
	if (!dev_can_discard(h->dev)) {
		req_done(q, -EOPNOTSUPP);
		return;
	}
	if (start >= end) {
		req_done(q, 0);
		return;
	}
	q->pieces.off = start;
	q->pieces.len = end - start;
	req_enter(q);
}

void dev_req_zero(struct dev_req *q, struct dev_handle *h, uint64_t len, uint64_t off,
		  bool may_unmap, bool fua)
{
	uint32_t flags = (fua ? RNBD_F_FUA : 0) | (may_unmap ? 0 : RNBD_F_NOUNMAP);

	req_init(q, h, IO_STAT_ZEROES, RNBD_OP_WRITE_ZEROES, flags, NULL, len, off);
	if (req_fits(q))
		req_enter(q);
}

/* ---- requests of a thread that waits ----
 * The request is on the caller's stack.  Blocks in clt-wait.h alone. */

static void call_wait(struct dev_req *q)
{
	struct clt_op *op = &q->io.clt;

	if (q->stage == DEV_REQ_ENTERS)
		clt_wait_event(&q->waiter);
	else
		clt_wait_more(&op->waiter, op->inflight ? op->con : NULL);
}

static int call_run(struct dev_req *q)
{
	while (!dev_req_step(q))
		call_wait(q);
	return dev_req_status(q);
}

int dev_call_read(struct dev_handle *h, void *buf, uint32_t len, uint64_t off)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_read(&q, h, buf, len, off);
	return call_run(&q);
}

int dev_call_write(struct dev_handle *h, const void *buf, uint32_t len, uint64_t off, bool fua)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_write(&q, h, buf, len, off, fua);
	return call_run(&q);
}

int dev_call_flush(struct dev_handle *h)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_flush(&q, h);
	return call_run(&q);
}

int dev_call_discard(struct dev_handle *h, uint32_t len, uint64_t off, bool fua)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_discard(&q, h, len, off, fua);
	return call_run(&q);
}

int dev_call_zero(struct dev_handle *h, uint32_t len, uint64_t off, bool may_unmap, bool fua)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_zero(&q, h, len, off, may_unmap, fua);
	return call_run(&q);
}
