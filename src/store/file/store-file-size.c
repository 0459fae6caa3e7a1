/* SPDX-License-Identifier: BSD-3-Clause */
/* The present size of a file or block device, and what its path names now.  Owns the buffers for
 * the kernel's answers while the questions are with the kernel; control thread.
 *
 * The ring asks for a file's size and looks at the path, by a statx on a worker, because a network
 * file system may wait for another machine.  A block device's size stands in the kernel's memory;
 * the answer waits only where the page cache must be dropped, once, for a part of a block.
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
#include <sys/sysmacros.h>

#include "store-file-io.h"

/* A question to the kernel.  While the kernel has the question, this memory belongs to the process
 * and outlives the export. */
struct store_file_ask {
	struct reactor_op op;
	struct reactor *reactor;
	struct export *ex;
	enum export_question question;
	struct statx stx;
	void (*done)(struct export *ex, int64_t answer, void *arg);
	void *arg;
};

static int64_t size_exported(const struct export *ex, uint64_t bytes)
{
	const struct store_file *f = store_file(ex);
	bool in_blocks = ex->direct && bytes < f->tail_start;

	/* No part of a device's block is read or written. */
	return (int64_t)align_down(bytes, in_blocks ? ex->block_align :
				   f->is_block ? f->whole : RNBD_SECTOR_SIZE);
}

/* *@comes, unless NULL: store_file_geometry_tail(). */
static int64_t block_device_size(const struct export *ex, bool *comes)
{
	struct store_file *f = store_file(ex);
	uint64_t bytes;

	if (ioctl(f->fd, BLKGETSIZE64, &bytes) < 0)
		return -errno;
	if (comes)
		*comes = store_file_geometry_tail(f, bytes % f->whole);
	return size_exported(ex, bytes);
}

/* What the path of @ex names, by @stx of the path, or the error @res of the look. */
static int64_t named_by(const struct export *ex, int res, const struct statx *stx)
{
	const struct store_file *f = store_file(ex);
	bool is_block = S_ISBLK(stx->stx_mode);

	if (res == -ENOENT || res == -ENOTDIR)
		return EXPORT_NAMED_NOTHING;
	if (res < 0)
		return res;
	if (is_block != f->is_block)
		return EXPORT_NAMED_OTHER;
	if (is_block)
		return makedev(stx->stx_rdev_major, stx->stx_rdev_minor) == f->dev ?
			EXPORT_NAMED_OPEN : EXPORT_NAMED_OTHER;
	return makedev(stx->stx_dev_major, stx->stx_dev_minor) == f->dev &&
		stx->stx_ino == f->ino ? EXPORT_NAMED_OPEN : EXPORT_NAMED_OTHER;
}

static void ask_submit(struct store_file_ask *ask)
{
	struct io_uring_sqe *sqe = reactor_ring_sqe(ask->reactor, &ask->op);
	int fd = store_file(ask->ex)->fd;

	if (ask->question == EXPORT_ASK_NAMED)
		io_uring_prep_statx(sqe, AT_FDCWD, ask->ex->path, 0, STATX_TYPE | STATX_INO,
				    &ask->stx);
	else if (store_file(ask->ex)->is_block)
		io_uring_prep_fadvise(sqe, fd, 0, 0, POSIX_FADV_DONTNEED);
	else
		io_uring_prep_statx(sqe, fd, "", AT_EMPTY_PATH, STATX_SIZE, &ask->stx);
}

static void ask_done(struct reactor_op *op, int res, unsigned flags)
{
	struct store_file_ask *ask = container_of(op, struct store_file_ask, op);
	bool again = res == -ETIME;	/* behind reactor_ring_later() */
	int64_t answer;

	if (reactor_ring_later(ask->reactor, op, &res))
		return;
	if (again) {
		ask_submit(ask);
		return;
	}
	if (ask->question == EXPORT_ASK_NAMED)
		answer = named_by(ask->ex, res, &ask->stx);
	else if (store_file(ask->ex)->is_block)
		answer = block_device_size(ask->ex, NULL);
	else
		answer = res < 0 ? res : size_exported(ask->ex, ask->stx.stx_size);
	store_file(ask->ex)->asking[ask->question] = false;
	ask->done(ask->ex, answer, ask->arg);
}

/* Ask @question, on the ring of @r.  NULL: no memory. */
static struct store_file_ask *ask_begin(struct reactor *r, struct export *ex,
					enum export_question question,
					void (*done)(struct export *ex, int64_t answer, void *arg),
					void *arg)
{
	struct store_file *f = store_file(ex);
	struct store_file_ask *ask = f->asks[question];

	if (!ask)
		ask = f->asks[question] = calloc(1, sizeof(*ask));
	if (!ask)
		return NULL;
	ask->op.done = ask_done;
	ask->reactor = r;
	ask->ex = ex;
	ask->question = question;
	ask->done = done;
	ask->arg = arg;
	f->asking[question] = true;
	ask_submit(ask);
	return ask;
}

bool store_file_size(struct reactor *r, struct export *ex, int64_t *size,
		      void (*done)(struct export *ex, int64_t size, void *arg), void *arg)
{
	struct store_file *f = store_file(ex);
	bool comes = false;

	if (f->is_block)
		*size = block_device_size(ex, &comes);
	if (f->is_block && !comes)
		return true;
	if (ask_begin(r, ex, EXPORT_ASK_SIZE, done, arg))
		return false;
	*size = f->is_block ? *size : -ENOMEM;
	return true;
}

bool store_file_size_named(struct reactor *r, struct export *ex, int64_t *named,
		      void (*done)(struct export *ex, int64_t named, void *arg), void *arg)
{
	if (ask_begin(r, ex, EXPORT_ASK_NAMED, done, arg))
		return false;
	*named = -ENOMEM;
	return true;
}
