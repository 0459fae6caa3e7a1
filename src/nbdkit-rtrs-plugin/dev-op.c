/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of RNBD: how one is sent, when it may be sent, and what a FLUSH must cover (doc/decisions.md D13).
 *
 * Owns nothing; any thread, that of the operation; a device is held by the caller's reference.  Never blocks. */
#include <errno.h>

#include "log.h"
#include "dev-priv.h"

static void advance(atomic_uint *seq, unsigned to)
{
	unsigned old = atomic_load(seq);

	while ((int)(to - old) > 0 && !atomic_compare_exchange_weak(seq, &old, to))
		;
}

static size_t io_encode(const struct clt_op *clt, uint64_t off, uint32_t len, uint8_t *usr)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);
	struct rnbd_io io = {
		.device_id = atomic_load_explicit(&op->dev->id, memory_order_relaxed),
		.op = op->op,
		.flags = op->flags,
		.sector = (op->off + off) / RNBD_SECTOR_SIZE,
		.bi_size = len,
	};

	if (op->op == RNBD_OP_FLUSH)
		io.sector = RNBD_FLUSH_SECTOR;
	rnbd_io_encode((struct rnbd_msg_io *)usr, &io);
	return sizeof(struct rnbd_msg_io);
}

/* The server that is back may be another one than that for which @op was begun. */
static bool can_do(const struct dev_io *op)
{
	if (op->op != RNBD_OP_WRITE_ZEROES)
		return true;
	return op->flags & RNBD_F_NOUNMAP ? dev_can_nounmap(op->dev) : dev_can_zero(op->dev);
}

static int io_ready(const struct clt_op *clt)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);

	switch (atomic_load_explicit(&op->dev->state, memory_order_acquire)) {
	case DEV_OPEN:
		/* ORDER: set before the request that was given up returned, so before any that must
		 * come behind it began. */
		if (dev_unsettled(op->dev))
			return CLT_AGAIN;
		return can_do(op) ? 0 : -EOPNOTSUPP;
	case DEV_FAILED:
		return -EIO;
	default:
		return CLT_AGAIN;
	}
}

/* A write that may still be carried out; see dev-reopen.c. */
static void io_gave_up(const struct clt_op *clt, unsigned life)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);
	struct dev *dev = op->dev;

	if (op->op == RNBD_OP_READ || op->op == RNBD_OP_FLUSH)
		return;
	advance(&dev->given_up_life, life);
	loop_post(clt->sess->loop, &dev->given_up_msg);
}

static uint32_t part_max(const struct dev *dev, enum rnbd_io_op what)
{
	uint64_t sectors = UINT32_MAX;

	if (what == RNBD_OP_DISCARD)
		sectors = dev->info.max_discard_sectors;
	else if (what == RNBD_OP_WRITE_ZEROES)
		sectors = atomic_load(&dev->max_zeroes);
	/* Whole blocks, and what 32 bits of bytes hold. */
	sectors = MIN(sectors * RNBD_SECTOR_SIZE, (uint64_t)1 << 31);
	return (uint32_t)MAX(align_down(sectors, dev->info.logical_block_size),
			     (uint64_t)dev->info.logical_block_size);
}

void dev_io_start(struct dev_io *op, struct dev *dev, enum rnbd_io_op what, uint32_t flags,
		   void *buf, uint64_t len, uint64_t off, void (*fn)(struct clt_waiter *w))
{
	op->dev = dev;
	op->op = what;
	op->flags = flags;
	op->off = off;
	op->inner = false;
	op->losses_told = atomic_load(&dev->losses_told);
	op->flush_seq = atomic_load(&dev->write_seq);
	op->clt = (struct clt_op){
		.sess = &dev->clt->sess,
		.dir = what == RNBD_OP_READ || what == RNBD_OP_FLUSH ? RTRS_DIR_READ :
								      RTRS_DIR_WRITE,
		.buf = buf,
		.len = len,
		.part_max = part_max(dev, what),
		.hint = clt_wait_hint(),
		.encode = io_encode,
		.ready = io_ready,
		.gave_up = io_gave_up,
	};
	clt_op_start(&op->clt, fn);
}

/* A write that needs a FLUSH was acknowledged. */
static void count_write(struct dev_io *op)
{
	struct dev *dev = op->dev;

	if ((op->flags & RNBD_F_FUA) || !dev->info.writeback)
		return;
	/* ORDER: see identity_check() in dev-reopen.c. */
	atomic_fetch_add(&dev->write_seq, 1);
	if (op->clt.life < atomic_load(&dev->clt->boot_life))
		atomic_store(&dev->lost_life, atomic_load(&dev->clt->boot_life));
}

/* A FLUSH was answered.  When the server lost what it should cover, it fails, and so do those that
 * run at the same time: they cover the same writes.  Later ones do not. */
static int end_flush(struct dev_io *op)
{
	struct dev *dev = op->dev;
	unsigned lost = atomic_load(&dev->lost_life);

	if (lost && op->clt.life >= lost && op->inner)
		return -EIO;
	if (lost && op->clt.life >= lost) {
		/* ORDER: counted before it is cleared, so that nobody sees neither. */
		atomic_fetch_add(&dev->losses_told, 1);
		atomic_compare_exchange_strong(&dev->lost_life, &lost, 0);
	}
	advance(&dev->flushed_seq, op->flush_seq);
	if (op->losses_told == atomic_load(&dev->losses_told))
		return 0;
	log_err(dev->name, "flush fails: the server may have lost earlier writes");
	return -EIO;
}

int dev_io_end(struct dev_io *op)
{
	if (op->clt.status)
		return op->clt.status;
	switch (op->op) {
	case RNBD_OP_WRITE:
	case RNBD_OP_WRITE_ZEROES:
		count_write(op);
		return 0;
	case RNBD_OP_FLUSH:
		return end_flush(op);
	default:
		return 0;
	}
}
