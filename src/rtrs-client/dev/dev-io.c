/* SPDX-License-Identifier: BSD-3-Clause */
/* NBD's requests, of any offset and length.  Cuts requests at blocks, knows the time when an IO may
 * be sent, waits for its end, and knows the writes that a FLUSH must cover (doc/decisions.md D13).
 *
 * Owns nothing; any thread; the caller's reference holds the device.  Blocks in clt-wait.h
 * alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "dev-priv.h"
#include "log.h"

/* ---- one IO ---- */

static size_t io_encode(const struct clt_op *clt, uint64_t off, uint32_t len, uint32_t tag,
			uint8_t *usr)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);
	struct rnbd_io io = {
		.device_id = atomic_load_explicit(&op->dev->id, memory_order_relaxed),
		.op = op->op,
		.flags = op->flags,
		.sector = (op->off + off) / RNBD_SECTOR_SIZE,
		.bi_size = len,
		.tag = tag,
	};

	if (op->op == RNBD_OP_FLUSH)
		io.sector = RNBD_FLUSH_SECTOR;
	if (op->op == RNBD_OP_EXTENTS) {	/* the parts are parts of the answer */
		io.sector = op->off / RNBD_SECTOR_SIZE;
		io.bi_size = op->span;
	}
	rnbd_io_encode((struct rnbd_msg_io *)usr, &io);
	return sizeof(struct rnbd_msg_io);
}

/* False if the server that came back cannot do @op, begun for another server. */
static bool can_do(const struct dev_io *op)
{
	if (op->op == RNBD_OP_EXTENTS)
		return atomic_load(&op->dev->clt->features) & RNBD_EXT_EXTENTS;
	if (op->op != RNBD_OP_WRITE_ZEROES)
		return true;
	return op->flags & RNBD_F_NOUNMAP ? dev_can_nounmap(op->dev) : dev_can_zero(op->dev);
}

static int io_ready(const struct clt_op *clt)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);

	switch (atomic_load_explicit(&op->dev->state, memory_order_acquire)) {
	case DEV_OPEN:
		/* ORDER: the given-up request sets the epoch before it returns, so before any
		 * request begins that must come behind it. */
		if (dev_unsettled(op->dev))
			return CLT_AGAIN;
		return can_do(op) ? 0 : -EOPNOTSUPP;
	case DEV_FAILED:
		return -EIO;
	default:
		return CLT_AGAIN;
	}
}

static bool only_reads(enum rnbd_io_op op)
{
	return op == RNBD_OP_READ || op == RNBD_OP_FLUSH || op == RNBD_OP_EXTENTS;
}

/* The server may still carry out the write @clt; see dev-settle.c. */
static void io_gave_up(const struct clt_op *clt, unsigned epoch)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);
	struct dev *dev = op->dev;
	unsigned old = atomic_load(&dev->given_up_epoch);

	if (only_reads(op->op))
		return;
	while (old < epoch && !atomic_compare_exchange_weak(&dev->given_up_epoch, &old, epoch))
		;
	loop_post(clt->io->loop, &dev->given_up_msg);
}

static uint32_t part_max(const struct dev *dev, enum rnbd_io_op what)
{
	uint64_t sectors = UINT32_MAX;

	if (what == RNBD_OP_DISCARD)
		sectors = dev->info.max_discard_sectors;
	else if (what == RNBD_OP_WRITE_ZEROES)
		sectors = atomic_load(&dev->max_zeroes);
	/* Whole blocks, in as many bytes as 32 bits hold. */
	sectors = MIN(sectors * RNBD_SECTOR_SIZE, (uint64_t)1 << 31);
	return (uint32_t)MAX(align_down(sectors, dev->info.logical_block_size),
			     (uint64_t)dev->info.logical_block_size);
}

/* @h NULL, as struct dev_io says: no FLUSH and no FUA. */
static void io_start(struct dev_io *op, struct dev *dev, struct dev_handle *h, enum rnbd_io_op what,
		     uint32_t flags, void *buf, uint64_t len, uint64_t off,
		     void (*fn)(struct clt_waiter *w))
{
	op->dev = dev;
	op->h = h;
	op->op = what;
	op->flags = flags;
	op->off = off;
	if (what == RNBD_OP_FLUSH || (flags & RNBD_F_FUA))
		dev_cover_begin(&op->cover, &h->told, &dev->loss);
	op->clt = (struct clt_op){
		.io = &dev->clt->sess.io,
		.dir = only_reads(what) ? RTRS_DIR_READ : RTRS_DIR_WRITE,
		.buf = buf,
		.len = len,
		.part_max = part_max(dev, what),
		.hint = clt_wait_hint(dev->clt->sess.io.wait),
		.encode = io_encode,
		.ready = io_ready,
		.gave_up = io_gave_up,
	};
	clt_op_start(&op->clt, fn);
}

void dev_io_start(struct dev_io *op, struct dev_handle *h, enum rnbd_io_op what, uint32_t flags,
		   void *buf, uint64_t len, uint64_t off, void (*fn)(struct clt_waiter *w))
{
	io_start(op, h->dev, h, what, flags, buf, len, off, fn);
}

/* The server has answered @op, a FLUSH or a write with FUA: fail if earlier writes are lost.
 * @tells: as dev_loss_tell(). */
static int tell_loss(struct dev_io *op, bool tells)
{
	int r = dev_loss_tell(&op->dev->loss, &op->h->told, &op->cover, op->clt.epoch, tells);

	if (r < 0 && tells)
		log_err(op->dev->name, "%s fails: the server may have lost earlier writes",
			op->op == RNBD_OP_FLUSH ? "flush" : "write with FUA");
	return r;
}

/* A write was acknowledged. */
static int end_write(struct dev_io *op)
{
	struct dev *dev = op->dev;
	unsigned boot_epoch;

	if (op->flags & RNBD_F_FUA)
		return tell_loss(op, true);
	if (!dev->info.writeback)
		return 0;
	/* ORDER: counted, then looked: see dev_greet_believe(). */
	dev_loss_wrote(&dev->loss, &op->h->told);
	boot_epoch = atomic_load(&dev->clt->boot_epoch);
	if (op->clt.epoch < boot_epoch)
		dev_loss_found(&dev->loss, boot_epoch);
	return 0;
}

static int end_flush(struct dev_io *op, bool tells)
{
	int r = tell_loss(op, tells);

	if (r == 0)
		dev_loss_flushed(&op->dev->loss, &op->cover);
	return r;
}

int dev_io_end(struct dev_io *op)
{
	if (op->clt.status)
		return op->clt.status;
	switch (op->op) {
	case RNBD_OP_WRITE:
	case RNBD_OP_WRITE_ZEROES:
		return end_write(op);
	case RNBD_OP_FLUSH:
		return end_flush(op, true);
	default:
		return 0;
	}
}

/* Aligned. */
static int io_run(struct dev_handle *h, enum rnbd_io_op what, uint32_t flags, void *buf,
		  uint64_t len, uint64_t off)
{
	struct dev_io op;

	dev_io_start(&op, h, what, flags, buf, len, off, NULL);
	clt_op_run(&op.clt);
	dev_stat_queued(h->dev->stat, op.clt.hint, op.clt.waited_ns);
	return dev_io_end(&op);
}

int dev_io_extents(struct dev *dev, void *answer, uint32_t room, uint32_t span, uint64_t off)
{
	struct dev_io op = { .span = span };

	io_start(&op, dev, NULL, RNBD_OP_EXTENTS, RNBD_F_SYNC, answer, room, off, NULL);
	clt_op_run(&op.clt);
	return dev_io_end(&op);
}

void dev_handle_init(struct dev_handle *h, struct dev *dev)
{
	h->dev = dev;
	dev_told_init(&h->told, &dev->loss);
}

void dev_handle_fini(struct dev_handle *h)
{
	dev_told_fini(&h->told, &h->dev->loss);
}

/* ---- writers and their ranges ---- */

struct writer {
	struct range range;
	struct clt_waiter waiter;
};

static void writer_granted(struct range *r)
{
	clt_wait_look(&container_of(r, struct writer, range)->waiter);
}

static void writer_enter(struct dev *dev, struct writer *w, uint64_t start, uint64_t end,
			 bool exclusive)
{
	w->range = (struct range){ .start = start, .end = end, .exclusive = exclusive,
				   .granted = writer_granted };
	clt_wait_init(&w->waiter, dev->clt->sess.io.wait, NULL);
	if (range_enter(&dev->ranges, &w->range))
		return;
	while (!range_is_granted(&dev->ranges, &w->range))
		clt_wait_event(&w->waiter);
}

static void writer_leave(struct dev *dev, struct writer *w)
{
	const struct clt_wait_ops *wait = dev->clt->sess.io.wait;

	clt_wait_batch_begin(wait);
	range_leave(&dev->ranges, &w->range);
	clt_wait_batch_end(wait);
}

static uint64_t block_size(const struct dev *dev)
{
	return dev->info.logical_block_size;
}

/* End of the last block that [.., @off) touches; a device may end inside a block. */
static uint64_t block_end(const struct dev *dev, uint64_t off, uint64_t size)
{
	return MIN(align_up(off, block_size(dev)), size);
}

static bool aligned(const struct dev *dev, uint64_t off, uint64_t len)
{
	return ((off | len) & (block_size(dev) - 1)) == 0;
}

/* Run a WRITE, DISCARD or WRITE_ZEROES of whole blocks. */
static int write_range(struct dev_handle *h, enum rnbd_io_op what, uint32_t flags, const void *buf,
		       uint64_t len, uint64_t off)
{
	struct writer writer;
	int r;

	writer_enter(h->dev, &writer, off, off + len, false);
	r = io_run(h, what, flags, (void *)buf, len, off);
	writer_leave(h->dev, &writer);
	return r;
}

/* ---- unaligned requests ----
 * Cut into a piece of the first block, whole blocks, and a piece of the last block. */

struct pieces {
	uint64_t size;			/* of the device, read once: a reopen may change it */
	uint64_t off, len;		/* the rest of the request; inside the device */
	uint64_t block, block_len;	/* the block a piece is in */
	uint64_t n;			/* bytes of the next piece */
	bool whole;			/* the piece is whole blocks */
};

/* The next piece of @p; false at the end. */
static bool next_piece(const struct dev *dev, struct pieces *p)
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

static int read_unaligned(struct dev_handle *h, uint8_t *buf, uint32_t len, uint64_t off)
{
	struct dev *dev = h->dev;
	_cleanup_free_ uint8_t *block = malloc(block_size(dev));
	struct pieces p = { .size = atomic_load(&dev->size), .off = off, .len = len };
	int r = block ? 0 : -ENOMEM;

	if (!range_ok(off, len, p.size))
		return -EIO;
	while (r == 0 && next_piece(dev, &p)) {
		uint8_t *to = buf + (p.off - off);

		if (p.whole) {
			r = io_run(h, RNBD_OP_READ, RNBD_F_SYNC, to, p.n, p.off);
			continue;
		}
		r = io_run(h, RNBD_OP_READ, RNBD_F_SYNC, block, p.block_len, p.block);
		if (r == 0)
			memcpy(to, block + (p.off - p.block), p.n);
	}
	return r;
}

/* @buf NULL: zeroes, whole blocks with @what. */
static int write_unaligned(struct dev_handle *h, enum rnbd_io_op what, uint32_t flags,
			   const uint8_t *buf, uint64_t len, uint64_t off)
{
	struct dev *dev = h->dev;
	_cleanup_free_ uint8_t *block = malloc(block_size(dev));
	struct pieces p = { .size = atomic_load(&dev->size), .off = off, .len = len };
	struct writer writer;
	int r = 0;

	if (!block)
		return -ENOMEM;
	if (!range_ok(off, len, p.size))
		return -EIO;
	writer_enter(dev, &writer, align_down(off, block_size(dev)),
		     block_end(dev, off + len, p.size), true);
	while (r == 0 && next_piece(dev, &p)) {
		const uint8_t *from = buf ? buf + (p.off - off) : NULL;

		if (p.whole) {
			r = io_run(h, what, flags, (void *)from, p.n, p.off);
			continue;
		}
		r = io_run(h, RNBD_OP_READ, RNBD_F_SYNC, block, p.block_len, p.block);
		if (r < 0)
			break;
		if (from)
			memcpy(block + (p.off - p.block), from, p.n);
		else
			memset(block + (p.off - p.block), 0, p.n);
		r = io_run(h, RNBD_OP_WRITE, flags & RNBD_F_FUA, block, p.block_len, p.block);
	}
	writer_leave(dev, &writer);
	return r;
}

/* ---- the requests of NBD ---- */

/* clt_wait_hint(), asked once by each thread. */
static unsigned stat_hint(const struct dev *dev)
{
	static _Thread_local unsigned mine;	/* + 1 */

	if (!mine)
		mine = 1 + clt_wait_hint(dev->clt->sess.io.wait);
	return mine - 1;
}

/* Count a request for @len bytes, begun at @began_ns and ended with @r. */
static int counted(struct dev *dev, enum io_stat_op op, uint64_t began_ns, uint64_t len, int r)
{
	dev_stat_count(dev->stat, stat_hint(dev), op, r, len, clock_measure_ns() - began_ns);
	return r;
}

int dev_io_read(struct dev_handle *h, void *buf, uint32_t len, uint64_t off)
{
	uint64_t began_ns = clock_measure_ns();
	int r;

	if (aligned(h->dev, off, len))
		r = io_run(h, RNBD_OP_READ, RNBD_F_SYNC, buf, len, off);
	else
		r = read_unaligned(h, buf, len, off);
	return counted(h->dev, IO_STAT_READ, began_ns, len, r);
}

int dev_io_write(struct dev_handle *h, const void *buf, uint32_t len, uint64_t off, bool fua)
{
	uint32_t flags = fua ? RNBD_F_FUA : 0;
	uint64_t began_ns = clock_measure_ns();
	int r;

	if (aligned(h->dev, off, len))
		r = write_range(h, RNBD_OP_WRITE, flags, buf, len, off);
	else
		r = write_unaligned(h, RNBD_OP_WRITE, flags, buf, len, off);
	return counted(h->dev, IO_STAT_WRITE, began_ns, len, r);
}

int dev_io_flush(struct dev_handle *h)
{
	uint64_t began_ns = clock_measure_ns();
	int r = io_run(h, RNBD_OP_FLUSH, RNBD_F_SYNC | RNBD_F_FUA, NULL, 0, 0);

	return counted(h->dev, IO_STAT_FLUSH, began_ns, 0, r);
}

/* FUA of a discard.  A discard is only advice, and programs ignore its errors: so this failure does
 * not count as told, and the next FLUSH fails because of the loss. */
static int flush_discard(struct dev_handle *h)
{
	struct dev_io op;

	dev_io_start(&op, h, RNBD_OP_FLUSH, RNBD_F_SYNC | RNBD_F_FUA, NULL, 0, 0, NULL);
	clt_op_run(&op.clt);
	dev_stat_queued(h->dev->stat, op.clt.hint, op.clt.waited_ns);
	return op.clt.status ? op.clt.status : end_flush(&op, false);
}

static int discard_blocks(struct dev_handle *h, uint32_t len, uint64_t off, bool fua)
{
	uint64_t start = align_up(off, block_size(h->dev));
	uint64_t end = align_down(off + len, block_size(h->dev));
	int r;

	if (start >= end)
		return 0;
	r = write_range(h, RNBD_OP_DISCARD, 0, NULL, end - start, start);
	return r == 0 && fua ? flush_discard(h) : r;
}

int dev_io_discard(struct dev_handle *h, uint32_t len, uint64_t off, bool fua)
{
	uint64_t began_ns = clock_measure_ns();

	if (!dev_can_discard(h->dev))
		return -EOPNOTSUPP;
	return counted(h->dev, IO_STAT_DISCARD, began_ns, len, discard_blocks(h, len, off, fua));
}

int dev_io_zero(struct dev_handle *h, uint32_t len, uint64_t off, bool may_unmap, bool fua)
{
	uint32_t flags = (fua ? RNBD_F_FUA : 0) | (may_unmap ? 0 : RNBD_F_NOUNMAP);
	uint64_t began_ns = clock_measure_ns();
	int r;

	if (aligned(h->dev, off, len))
		r = write_range(h, RNBD_OP_WRITE_ZEROES, flags, NULL, len, off);
	else
		r = write_unaligned(h, RNBD_OP_WRITE_ZEROES, flags, NULL, len, off);
	return counted(h->dev, IO_STAT_ZEROES, began_ns, len, r);
}
