/* SPDX-License-Identifier: BSD-3-Clause */
/* The present size of a file or block device.  Owns the buffer for the kernel's answer while the
 * question is with the kernel; control thread.
 *
 * The ring asks for a file's size, by a statx on a worker, because a network file system may wait
 * for another machine.  A block device's size stands in the kernel's memory.
 *
 * A direct export that ended with a whole block exports only whole blocks, because the last block
 * is not read and written through the page cache.  A direct export that had a tail takes all
 * growth as a part of the tail (store-file-rw.c).  A tail that would begin or move under requests
 * could have one page both in the cache and behind the cache. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "store-file-io.h"

/* A question to the kernel.  While the kernel has the question, this memory belongs to the process
 * and outlives the export. */
struct store_file_ask {
	struct reactor_op op;
	struct export *ex;
	struct statx stx;
	void (*done)(struct export *ex, int64_t size, void *arg);
	void *arg;
};

static int64_t size_exported(const struct export *ex, uint64_t bytes)
{
	bool in_blocks = ex->direct && bytes < store_file(ex)->tail_start;

	return (int64_t)align_down(bytes, in_blocks ? ex->block_align : RNBD_SECTOR_SIZE);
}

static int64_t block_device_size(const struct export *ex)
{
	uint64_t bytes;

	return ioctl(store_file(ex)->fd, BLKGETSIZE64, &bytes) < 0 ? -errno
								   : size_exported(ex, bytes);
}

static void ask_submit(struct reactor *r, struct store_file_ask *ask)
{
	struct io_uring_sqe *sqe = reactor_sqe(r, &ask->op);

	io_uring_prep_statx(sqe, store_file(ask->ex)->fd, "", AT_EMPTY_PATH, STATX_SIZE, &ask->stx);
}

static void ask_done(struct reactor_op *op, int res, unsigned flags)
{
	struct store_file_ask *ask = container_of(op, struct store_file_ask, op);
	int64_t size = res < 0 ? res : size_exported(ask->ex, ask->stx.stx_size);

	store_file(ask->ex)->asking = false;
	ask->done(ask->ex, size, ask->arg);
}

bool store_file_size(struct reactor *r, struct export *ex, int64_t *size,
		      void (*done)(struct export *ex, int64_t size, void *arg), void *arg)
{
	struct store_file *f = store_file(ex);

	if (store_file(ex)->is_block) {
		*size = block_device_size(ex);
		return true;
	}
	if (!f->ask)
		f->ask = calloc(1, sizeof(*f->ask));
	if (!f->ask) {
		*size = -ENOMEM;
		return true;
	}
	f->ask->op.done = ask_done;
	f->ask->ex = ex;
	f->ask->done = done;
	f->ask->arg = arg;
	f->asking = true;
	ask_submit(r, f->ask);
	return false;
}
