/* SPDX-License-Identifier: BSD-3-Clause */
/* One IO of whole blocks, or a question for extents: how it is encoded, when it may be sent, and
 * which losses its end reports (doc/decisions.md D13).
 *
 * Any thread; a device is held by the caller's reference.  No function blocks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "dev-priv.h"
#include "dev.h"
#include "log.h"

#define EXTENTS_LEN_MAX (1u << 31)	/* bytes of one question: whole sectors in 32 bits */

/* ---- one IO ---- */

/* The message for the part [off, off + len) of @clt. */
static struct rnbd_io io_message(const struct clt_op *clt, uint64_t off, uint32_t len, uint32_t tag)
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
	return io;
}

static size_t io_encode(const struct clt_op *clt, uint64_t off, uint32_t len, uint32_t tag,
			uint8_t *usr)
{
	struct rnbd_io io = io_message(clt, off, len, tag);

	rnbd_io_encode((struct rnbd_msg_io *)usr, &io);
	return sizeof(struct rnbd_msg_io);
}

static void io_tell(const struct clt_op *clt, uint64_t off, uint32_t len, char *text, size_t size)
{
	const struct dev_io *op = container_of(clt, struct dev_io, clt);
	struct rnbd_io io = io_message(clt, off, len, 0);

	snprintf(text, size, "%s of %u bytes at %llu of %s", rnbd_op_name(io.op), io.bi_size,
		 (unsigned long long)(op->off + off), op->dev->name);
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
	case DEV_REPLACED:		/* cannot be settled: the name leads elsewhere */
		return dev_unsettled(op->dev) ? -EIO : can_do(op) ? 0 : -EOPNOTSUPP;
	case DEV_FAILED:
	case DEV_STALE:
		return -EIO;
	default:
		return CLT_AGAIN;
	}
}

static bool only_reads(enum rnbd_io_op op)
{
	return op == RNBD_OP_READ || op == RNBD_OP_FLUSH || op == RNBD_OP_EXTENTS;
}

/* The server may still carry out the write @clt; see dev-answer.c. */
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

static bool has_cover(const struct dev_io *op)
{
	return op->op == RNBD_OP_FLUSH || (op->flags & RNBD_F_FUA);
}

void dev_io_start(struct dev_io *op, struct dev_handle *h, enum rnbd_io_op what, uint32_t flags,
		   void *buf, uint64_t len, uint64_t off, void (*fn)(struct clt_waiter *w))
{
	struct dev *dev = h->dev;
	struct clt_op *clt = &op->clt;

	op->dev = dev;
	op->h = h;
	op->op = what;
	op->flags = flags;
	op->off = off;
	if (has_cover(op))
		dev_cover_begin(&op->cover, &h->told, &dev->loss);
	/* Field by field: an initializer would zero the private part first, which clt_op_start()
	 * sets. */
	clt->io = &dev->clt->sess.io;
	clt->account = &h->account;
	clt->dir = only_reads(what) ? RTRS_DIR_READ : RTRS_DIR_WRITE;
	clt->kind = CLT_OP_IO;
	clt->via = NULL;
	clt->buf = buf;
	clt->len = len;
	clt->part_max = part_max(dev, what);
	clt->user = h->user;
	clt->hint = clt_io_hint(clt->io);
	clt->of = dev;
	clt->began_ns = op->began_ns;
	clt->encode = io_encode;
	clt->tell = io_tell;
	clt->ready = io_ready;
	clt->lost = NULL;
	clt->gave_up = io_gave_up;
	clt_op_start(clt, fn);
}

/* The server has answered @op, a FLUSH or a write with FUA: fail if earlier writes are lost.
 * @tells: as dev_loss_tell(). */
static int tell_loss(struct dev_io *op, bool tells)
{
	int r = dev_loss_tell(&op->dev->loss, &op->h->told, &op->cover, op->clt.epoch, tells);

	if (r < 0 && tells)
		log_event(LOG_LEVEL_ERROR, DEV_FIELDS(op->dev, WRITES_LOST), op->dev->name,
			  "%s fails: the server may have lost earlier writes",
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

/* Note, once in an epoch, that the server does not know the device of @op any more: it was removed
 * by force, or taken away. */
static int failed(struct dev_io *op)
{
	struct dev *dev = op->dev;

	if (has_cover(op))
		dev_cover_fail(&op->cover, &op->h->told, &dev->loss);
	if (op->clt.status == -ENOTCONN &&
	    atomic_exchange(&dev->taken_epoch, op->clt.epoch) != op->clt.epoch)
		log_event(LOG_LEVEL_ERROR, DEV_FIELDS(dev, DEVICE_LOST), dev->name,
			  "the server has taken the export away: requests fail until it is closed "
			  "and opened again");
	return op->clt.status;
}

int dev_io_end(struct dev_io *op)
{
	if (op->clt.status)
		return failed(op);
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

int dev_io_end_untold(struct dev_io *op)
{
	return op->clt.status ? failed(op) : end_flush(op, false);
}

void dev_handle_init(struct dev_handle *h, struct dev *dev)
{
	static atomic_ullong users;

	h->dev = dev;
	h->user = atomic_fetch_add(&users, 1) + 1;
	clt_account_open(&h->account, &dev->clt->sess.io);
	dev_told_init(&h->told, &dev->loss);
}

void dev_handle_arrived(struct dev_handle *h)
{
	dev_told_arrived(&h->told, &h->dev->loss);
}

void dev_handle_fini(struct dev_handle *h)
{
	dev_told_fini(&h->told, &h->dev->loss);
	clt_account_close(&h->account);
}

/* ---- extents ----
 * The client uses no part of an answer before the whole answer is checked. */

bool dev_extents_known(const struct dev *dev)
{
	return atomic_load(&dev->clt->features) & RNBD_EXT_EXTENTS;
}

void dev_extents_start(struct dev_extents_ask *ask, struct dev_handle *h, uint64_t len,
		       uint64_t off, bool one, void (*fn)(struct clt_waiter *w))
{
	uint64_t start = align_down(off, RNBD_SECTOR_SIZE);
	uint64_t span = MIN(align_up(off + len, RNBD_SECTOR_SIZE) - start,
			    (uint64_t)EXTENTS_LEN_MAX);

	ask->start = start;
	ask->room = one ? RNBD_EXTENTS_ROOM_MIN : RNBD_EXTENTS_ROOM;
	ask->io.span = (uint32_t)span;
	ask->io.began_ns = clock_measure_ns();
	dev_io_start(&ask->io, h, RNBD_OP_EXTENTS, RNBD_F_SYNC, ask->answer, ask->room, start, fn);
}

int dev_extents_end(struct dev_extents_ask *ask,
		    int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent),
		    void *arg)
{
	const struct rnbd_extent all = { .len = ask->io.span };
	uint64_t start = ask->start;
	int n = dev_io_end(&ask->io);

	if (n == -EOPNOTSUPP)
		return fn(arg, start, &all);
	if (n == 0)
		n = rnbd_extents_decode(ask->answer, ask->room, ask->io.span);
	if (n < 0)
		return n == -EINVAL ? -EBADMSG : n;
	for (int i = 0; i < n; i++) {
		struct rnbd_extent e = rnbd_extents_get(ask->answer, (unsigned)i);
		int r = fn(arg, start, &e);

		if (r)
			return r;
		start += e.len;
	}
	return 0;
}

int dev_extents(struct dev_handle *h, uint32_t len, uint64_t off, bool one,
		int (*fn)(void *arg, uint64_t off, const struct rnbd_extent *extent), void *arg)
{
	_cleanup_free_ void *answer = malloc(RNBD_EXTENTS_ROOM);
	struct dev_extents_ask ask = { .answer = answer };

	if (!answer)
		return -ENOMEM;
	dev_extents_start(&ask, h, len, off, one, NULL);
	clt_op_run(&ask.io.clt);
	return dev_extents_end(&ask, fn, arg);
}

/* ---- counters: shards and their sums ---- */

void dev_stat_ever(const struct dev *dev, struct dev_stat *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < DEV_STAT_SHARDS; i++) {
		io_stat_add(&sum->io, &dev->stat[i].io, 1);
		hist_add(&sum->queued, &dev->stat[i].queued, 1);
	}
	for (unsigned op = 0; op < IO_STAT_NOPS; op++)
		counter_add(&sum->io.op[op].count, hist_total(&sum->io.op[op].latency));
}

void dev_stat_get(const struct dev *dev, struct dev_stat *sum)
{
	dev_stat_ever(dev, sum);
	io_stat_add(&sum->io, &dev->stat_base.io, -1);
	hist_add(&sum->queued, &dev->stat_base.queued, -1);
}

void dev_stat_reset(struct dev *dev)
{
	dev_stat_ever(dev, &dev->stat_base);
}

/* ---- ages ---- */

struct ages {
	uint64_t now_ns, oldest_ns;
};

static void age_found(void *arg, const void *of, uint64_t began_ns)
{
	struct dev *dev = (struct dev *)of;	/* NULL: a message of the session */
	struct ages *ages = arg;
	uint64_t ns = began_ns < ages->now_ns ? ages->now_ns - began_ns : 0;

	ages->oldest_ns = MAX(ages->oldest_ns, ns);
	if (dev)
		dev->oldest_ns = MAX(dev->oldest_ns, ns);
}

uint64_t dev_stat_ages(struct client *clt)
{
	struct ages ages = { .now_ns = clock_measure_ns() };
	struct dev *dev;

	dev_for_each(dev, clt)
		dev->oldest_ns = 0;
	clt_io_each_age(&clt->sess.io, age_found, &ages);
	return ages.oldest_ns;
}

uint64_t dev_stat_oldest_ns(const struct dev *dev)
{
	return dev->oldest_ns;
}
