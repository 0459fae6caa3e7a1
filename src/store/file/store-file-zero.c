/* SPDX-License-Identifier: BSD-3-Clause */
/* DISCARD and WRITE_ZEROES: tries the kernel's ways in order of preference, remembers for each
 * export the ways that the kernel cannot do, and writes zeroes as the last way.  Owns nothing;
 * thread of the reactor. */
#include <config.h>

#include <errno.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "store-file-io.h"

/* Linux 6.12, <linux/blkdev.h>; not in the headers of older systems. */
#ifndef BLOCK_URING_CMD_DISCARD
#define BLOCK_URING_CMD_DISCARD _IO(0x12, 0)
#endif

/* Ways in order of preference; the bit is remembered in store_file.cannot. */
struct way {
	unsigned cannot;
	bool block_only;
	int mode;			/* of fallocate; 0: io_uring's discard command */
};

static const struct way discard_ways[] = {
	{ STORE_FILE_CANNOT_DISCARD, true, 0 },
	{ STORE_FILE_CANNOT_STALE, true,
	  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE | FALLOC_FL_NO_HIDE_STALE },
	{ STORE_FILE_CANNOT_PUNCH, false, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
};

static const struct way zero_ways[] = {
	{ STORE_FILE_CANNOT_PUNCH, false, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
	{ STORE_FILE_CANNOT_ZERO_RANGE, false, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE },
};

static const struct way nounmap_ways[] = {
	{ STORE_FILE_CANNOT_ZERO_RANGE, false, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE },
};

static const struct way *zero_ways_of(const struct export_io *io, unsigned *n)
{
	if (io->op == RNBD_OP_DISCARD) {
		*n = ARRAY_SIZE(discard_ways);
		return discard_ways;
	}
	if (io->flags & RNBD_F_NOUNMAP) {
		*n = ARRAY_SIZE(nounmap_ways);
		return nounmap_ways;
	}
	*n = ARRAY_SIZE(zero_ways);
	return zero_ways;
}

/* The range for the kernel, of whole blocks: a discard leaves the rest alone, since a discard
 * promises nothing; for zeroes see zero_try(). */
static void zero_range(const struct export_io *io, uint64_t *start, uint64_t *end)
{
	uint32_t block = store_file(io->ex)->whole;

	*start = align_up(io->offset, block);
	*end = MAX(align_down(io->offset + io->len, block), *start);
}

static void zero_submit(struct export_io *io, const struct way *way, uint64_t start, uint64_t len)
{
	struct io_uring_sqe *sqe = reactor_ring_sqe(io->reactor, &file_io(io)->op);

	if (way->mode) {
		io_uring_prep_fallocate(sqe, store_file_fixed_zero(io->ex), way->mode, (off_t)start,
					(off_t)len);
	} else {
		io_uring_prep_rw(IORING_OP_URING_CMD, sqe, store_file_fixed_zero(io->ex), NULL, 0,
				 0);
		sqe->cmd_op = BLOCK_URING_CMD_DISCARD;
		sqe->addr = start;
		sqe->addr3 = len;
	}
	sqe->flags |= IOSQE_FIXED_FILE;
}

/* Try the ways from file_io(io)->how on. */
static void zero_try(struct export_io *io)
{
	const struct store_file *f = store_file(io->ex);
	unsigned cannot = atomic_load_explicit(&f->cannot, memory_order_relaxed), n;
	const struct way *ways = zero_ways_of(io, &n);
	uint64_t start, end;

	zero_range(io, &start, &end);
	if (io->op == RNBD_OP_DISCARD && start == end) {
		export_io_next_later(io, 0);
		return;
	}
	if (io->op == RNBD_OP_WRITE_ZEROES && end - start != io->len)
		file_io(io)->how = n;		/* part of a block: only by writing */
	for (; file_io(io)->how < n; file_io(io)->how++) {
		const struct way *way = &ways[file_io(io)->how];

		if ((cannot & way->cannot) || (way->block_only && !store_file(io->ex)->is_block))
			continue;
		zero_submit(io, way, start, end - start);
		return;
	}
	if (io->op == RNBD_OP_DISCARD)
		export_io_next_later(io, -EOPNOTSUPP);
	else
		store_file_rw(io);
}

static void zero_done(struct reactor_op *op, int res, unsigned flags)
{
	struct export_io *io = store_file_io(op);
	unsigned n;
	const struct way *ways = zero_ways_of(io, &n);

	if (store_file_later(io->ex, io->reactor, op, &res))
		return;
	if (res == -EINTR || res == -EAGAIN) {
		zero_try(io);
	} else if (res == -EOPNOTSUPP || res == -ENOSYS || res == -ENOTTY) {
		atomic_fetch_or_explicit(&store_file(io->ex)->cannot, ways[file_io(io)->how].cannot,
					 memory_order_relaxed);
		file_io(io)->how++;
		zero_try(io);
	} else if (res == -EINVAL) {
		/* The range is good, so the file system does not know the mode (fuse2fs and
		 * ZERO_RANGE), or not for this range. */
		file_io(io)->how++;
		zero_try(io);
	} else {
		export_io_next(io, MIN(store_file_result(io, res), 0));
	}
}

void store_file_zero(struct export_io *io)
{
	file_io(io)->how = 0;
	io->need_sync = true;
	file_io(io)->op.done = zero_done;
	zero_try(io);
}
