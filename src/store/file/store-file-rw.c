/* SPDX-License-Identifier: BSD-3-Clause */
/* READ and WRITE, and WRITE_ZEROES if zeroes have to be written; thread of the reactor.
 *
 * A request is done in pieces; a short transfer just makes for another piece.  Buffered exports
 * need one piece.  On a direct export a piece is, from the present position of the request:
 *   - as much as is aligned: straight from or to the caller's memory;
 *   - aligned in the file but not in memory: the same through a bounce buffer;
 *   - part of a block, at the head or the end of the request: a read goes through the bounce
 *     buffer; a write reads the block, changes it and writes it back, while range.c keeps all
 *     other writes of this block out;
 *   - behind tail_start: through the page cache, which has no blocks to a caller.
 * The failure of a piece fails the request.  A read or write of 0 bytes means a truncated file:
 * -EIO. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "clock.h"
#include "exports.h"
#include "store-file-io.h"

#define BOUNCE_MAX (1u << 20)

enum rw_how {
	RW_PLAIN,
	RW_DSYNC,			/* a durable write without a result yet */
	RW_NOT_DSYNC,			/* the same write again, plain: see rw_done() */
	RW_TAIL,
	RW_BOUNCE,
	RW_MODIFY_READ,			/* part of a block: read the block ... */
	RW_MODIFY_WRITE,		/* ... and write the block back */
};

static uint64_t rw_pos(const struct export_io *io)
{
	return io->offset + file_io(io)->progress;
}

static bool rw_is_read(const struct export_io *io)
{
	return io->op == RNBD_OP_READ;
}

/* The caller's memory at @file_io(io)->progress; zeroes for WRITE_ZEROES. */
static void *rw_memory(const struct export_io *io)
{
	if (io->op == RNBD_OP_WRITE_ZEROES)
		return io->slot->ring->zeroes;
	return (char *)io->buf + file_io(io)->progress;
}

/* True if the kernel does the FUA of @io.  On a direct export a device has a cheaper way than a
 * flush, and the write has its own error.  Through the page cache the write would share the file's
 * error with others (store-file-sync.c), and an unknown file system may sync nothing: there the
 * SYNC stage does the FUA. */
static bool rw_dsync(const struct export_io *io)
{
	return io->ex->direct && io->op == RNBD_OP_WRITE && (io->flags & RNBD_F_FUA) &&
	       (store_file(io->ex)->fs & STORE_FILE_FS_DSYNC);
}

static void rw_submit(struct export_io *io, bool read, int slot, void *buf, uint32_t len,
		      uint64_t pos)
{
	struct io_uring_sqe *sqe = reactor_ring_sqe(io->reactor, &file_io(io)->op);
	bool fixed = io->mem >= 0 && io->op != RNBD_OP_WRITE_ZEROES && !file_io(io)->bounce;

	if (read && fixed)
		io_uring_prep_read_fixed(sqe, slot, buf, len, pos, io->mem);
	else if (read)
		io_uring_prep_read(sqe, slot, buf, len, pos);
	else if (fixed)
		io_uring_prep_write_fixed(sqe, slot, buf, len, pos, io->mem);
	else
		io_uring_prep_write(sqe, slot, buf, len, pos);
	sqe->flags |= IOSQE_FIXED_FILE;
	sqe->ioprio = io->prio;
	/* Some kernels wait for a frozen file system in the ring's own attempt (before 6.12). */
	if (!read && io->slot->ring->never_blocks)
		sqe->flags |= IOSQE_ASYNC;
	if (file_io(io)->how == RW_DSYNC)
		sqe->rw_flags = RWF_DSYNC;
}

static void rw_sync_ended(const struct export_io *io)
{
	if (file_io(io)->how == RW_DSYNC || file_io(io)->how == RW_NOT_DSYNC)
		export_sync_ended(store_state(io->ex->store));
}

/* The block window around the piece. */
static uint64_t rw_window(const struct export_io *io, uint32_t *len)
{
	uint64_t start = align_down(rw_pos(io), io->ex->block_align);

	*len = (uint32_t)(align_up(rw_pos(io) + file_io(io)->piece, io->ex->block_align) - start);
	return start;
}

static void rw_bounce_put(struct export_io *io)
{
	free(file_io(io)->bounce);
	file_io(io)->bounce = NULL;
}

/* Decide on the next piece of a direct request: sets piece and how. */
static void rw_choose(struct export_io *io)
{
	const struct export *ex = io->ex;
	uint64_t pos = rw_pos(io), align = ex->block_align, left = io->len - file_io(io)->progress;
	uint64_t head = pos % align;

	if (io->op == RNBD_OP_WRITE_ZEROES)
		left = MIN(left, (uint64_t)EXPORT_ZEROES);
	file_io(io)->how = RW_PLAIN;
	file_io(io)->piece = (uint32_t)left;
	if (pos >= store_file(ex)->tail_start) {
		file_io(io)->how = RW_TAIL;
		return;
	}
	left = MIN(left, store_file(ex)->tail_start - pos);
	if (head || left < align) {
		file_io(io)->how = rw_is_read(io) ? RW_BOUNCE : RW_MODIFY_READ;
		left = MIN(left, align - head);
	} else {
		left = align_down(left, align);
		if ((uintptr_t)rw_memory(io) % align) {
			file_io(io)->how = RW_BOUNCE;
			left = MIN(left, (uint64_t)BOUNCE_MAX);
		}
	}
	file_io(io)->piece = (uint32_t)left;
}

static void rw_end(struct export_io *io, int status)
{
	rw_bounce_put(io);
	export_io_next(io, status);
}

static void rw_bounce_start(struct export_io *io)
{
	bool read = rw_is_read(io) || file_io(io)->how == RW_MODIFY_READ;
	uint64_t start;
	uint32_t len;

	start = rw_window(io, &len);
	if (!file_io(io)->bounce &&
	    posix_memalign(&file_io(io)->bounce, io->ex->block_align, len)) {
		file_io(io)->bounce = NULL;
		export_io_next_later(io, -ENOMEM);
		return;
	}
	if (file_io(io)->how == RW_BOUNCE && !read)
		memcpy(file_io(io)->bounce, rw_memory(io), file_io(io)->piece);
	rw_submit(io, read, store_file_fixed(io->ex), file_io(io)->bounce, len, start);
}

static void rw_next_piece(struct export_io *io)
{
	if (io->ex->direct) {
		rw_choose(io);
	} else {
		file_io(io)->how = RW_PLAIN;
		file_io(io)->piece = io->len - file_io(io)->progress;
		if (io->op == RNBD_OP_WRITE_ZEROES)
			file_io(io)->piece = MIN(file_io(io)->piece, EXPORT_ZEROES);
	}
	if (file_io(io)->how == RW_PLAIN && rw_dsync(io)) {
		file_io(io)->how = RW_DSYNC;
		/* The kernel may report the errors of earlier writes to this write. */
		export_sync_begun(io->ex);
	} else {
		io->need_sync = true;	/* the SYNC stage makes the write durable */
	}
	if (file_io(io)->how >= RW_BOUNCE)
		rw_bounce_start(io);
	else
		rw_submit(io, rw_is_read(io),
			  file_io(io)->how == RW_TAIL ? store_file_fixed_tail(io->ex)
						      : store_file_fixed(io->ex),
			  rw_memory(io), file_io(io)->piece, rw_pos(io));
}

/* Apply @res transferred bytes of the window to the piece.  Returns the length of the piece, 0
 * when the piece goes on, or -errno. */
static int rw_bounce_done(struct export_io *io, int res)
{
	uint32_t len, skip = (uint32_t)(rw_pos(io) - rw_window(io, &len));

	if (file_io(io)->how == RW_BOUNCE && rw_is_read(io)) {
		if ((uint32_t)res <= skip)
			return -EIO;
		res = (int)MIN((uint32_t)res - skip, file_io(io)->piece);
		memcpy(rw_memory(io), (char *)file_io(io)->bounce + skip, (size_t)res);
		return res;
	}
	if (file_io(io)->how == RW_BOUNCE)
		return (int)MIN((uint32_t)res, file_io(io)->piece);
	if ((uint32_t)res != len)		/* part of a block: truncated, or a broken device */
		return -EIO;
	if (file_io(io)->how == RW_MODIFY_READ) {
		memcpy((char *)file_io(io)->bounce + skip, rw_memory(io), file_io(io)->piece);
		file_io(io)->how = RW_MODIFY_WRITE;
		rw_bounce_start(io);
		return 0;
	}
	return (int)file_io(io)->piece;
}

static void rw_submit_not_dsync(struct export_io *io)
{
	rw_submit(io, false, store_file_fixed(io->ex), rw_memory(io), file_io(io)->piece,
		  rw_pos(io));
}

/* Write again without DSYNC after a failed DSYNC write, to learn the cause.  The write itself may
 * have failed: a matter of this request alone.  Or earlier writes could not be made durable: a
 * matter of all FLUSHes. */
static bool rw_retry_without_dsync(struct export_io *io, int res)
{
	if (file_io(io)->how != RW_DSYNC || res == -EAGAIN || export_io_is_fenced(io, res))
		return false;
	file_io(io)->how = RW_NOT_DSYNC;
	io->status = res;
	rw_submit_not_dsync(io);
	return true;
}

static void rw_done(struct reactor_op *op, int res, unsigned flags)
{
	struct export_io *io = store_file_io(op);

	if (store_file_later(io->ex, io->reactor, op, &res))
		return;
	if (res == -EINTR || res == -EAGAIN) {
		if (file_io(io)->how == RW_NOT_DSYNC) {
			rw_submit_not_dsync(io);
			return;
		}
		rw_sync_ended(io);
		rw_bounce_put(io);
		rw_next_piece(io);
		return;
	}
	res = store_file_result(io, res);
	if (file_io(io)->how == RW_NOT_DSYNC && res > 0) {
		export_sync_failed(io->ex, io->status);
		rw_sync_ended(io);
		rw_end(io, io->status);
		return;
	}
	if (res < 0 && rw_retry_without_dsync(io, res))
		return;
	rw_sync_ended(io);
	if (res > 0 && file_io(io)->bounce) {
		res = rw_bounce_done(io, res);
		if (!res)
			return;
	} else if (!res) {
		res = -EIO;
	}
	if (res < 0) {
		rw_end(io, res);
		return;
	}
	rw_bounce_put(io);
	file_io(io)->progress += (uint32_t)res;
	if (file_io(io)->progress < io->len)
		rw_next_piece(io);
	else
		rw_end(io, 0);
}

/* ---- without the ring ---- */

/* Buffered WRITEs by a plain system call on the reactor's own thread, if this is faster and stops
 * nothing that would not stop anyway (doc/decisions.md D3):
 *   - if all exports of the server lie on one file system (exports.one_medium);
 *   - on file systems that wait only for this machine (STORE_FILE_FS_LOCAL);
 *   - on the threads for IO: the control thread (never_blocks) leaves all writes to workers;
 *   - not for a while after a write that slept: for INLINE_PAUSE_FACTOR times as long workers do
 *     the ring's writes, so such sleeps take a fifth of the thread's time at most.  A write that
 *     only ends late, because another thread had the processor, changes nothing.
 * A file system that takes RWF_NOWAIT never sleeps in the ring's own attempt, and is left to the
 * ring; the first WRITE of an export finds the kind out, on any thread. */
#define INLINE_SLOW_MS 5u
#define INLINE_PAUSE_FACTOR 4u

enum inline_kind {
	INLINE_UNKNOWN,
	INLINE_RING,			/* the ring does not need a worker */
	INLINE_CALL,
};

static enum inline_kind inline_kind_of(const struct export *ex)
{
	return (enum inline_kind)atomic_load_explicit(&store_file(ex)->inline_kind,
						      memory_order_relaxed);
}

static ssize_t inline_write_piece(struct export_io *io, int flags)
{
	struct iovec iov = {
		.iov_base = (char *)io->buf + file_io(io)->progress,
		.iov_len = io->len - file_io(io)->progress,
	};
	ssize_t n;

	do {
		n = pwritev2(store_file(io->ex)->fd, &iov, 1,
			     (off_t)(io->offset + file_io(io)->progress), flags);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* The number of times that this thread has slept. */
static long thread_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_nvcsw;
}

/* Attempt the first WRITE of an export as the ring would, and note the kind. */
static void inline_find_kind(struct export_io *io)
{
	ssize_t n = inline_write_piece(io, RWF_NOWAIT);

	if (n > 0)
		file_io(io)->progress += (uint32_t)n;
	if (n > 0 || n == -EAGAIN || n == -EOPNOTSUPP)
		atomic_store_explicit(&store_file(io->ex)->inline_kind,
				      n == -EOPNOTSUPP ? INLINE_CALL : INLINE_RING,
				      memory_order_relaxed);
}

/* True if @ring's thread may write to @ex by a call now, if a call suits the kind of @ex. */
static bool inline_may_call(const struct export_ring *ring, const struct export *ex)
{
	return !ex->direct && exports_one_medium(ex->all) &&
	       (store_file(ex)->fs & STORE_FILE_FS_LOCAL) && !ring->never_blocks &&
	       clock_now_ms() >= ring->inline_pause_until_ms;
}

bool store_file_rw_takes(const struct export_io *io)
{
	return !(io->flags & RNBD_F_PREFLUSH) && inline_may_call(io->slot->ring, io->ex) &&
	       inline_kind_of(io->ex) == INLINE_CALL;
}

/* Write the rest of @io by system calls.  Returns 0 or -errno; or 1: this kind of file system is
 * better left to the ring. */
static int inline_write_all(struct export_io *io)
{
	ssize_t n = 1;

	if (inline_kind_of(io->ex) == INLINE_UNKNOWN)
		inline_find_kind(io);
	if (file_io(io)->progress < io->len && inline_kind_of(io->ex) != INLINE_CALL)
		return 1;
	while (file_io(io)->progress < io->len && (n = inline_write_piece(io, 0)) > 0)
		file_io(io)->progress += (uint32_t)n;
	return n > 0 ? 0 : n < 0 ? (int)n : -EIO;
}

static bool inline_write(struct export_io *io, int *status)
{
	struct export_ring *ring = io->slot->ring;
	uint64_t begin, end;
	long slept;

	if (!inline_may_call(ring, io->ex) || inline_kind_of(io->ex) == INLINE_RING)
		return false;
	begin = clock_now_ms();
	slept = thread_sleeps();
	atomic_store_explicit(&ring->inline_since_ms, begin, memory_order_relaxed);
	*status = inline_write_all(io);
	atomic_store_explicit(&ring->inline_since_ms, 0, memory_order_relaxed);
	end = clock_now_ms();
	if (end - begin >= INLINE_SLOW_MS && thread_sleeps() != slept)
		ring->inline_pause_until_ms = end + (end - begin) * INLINE_PAUSE_FACTOR;
	return *status <= 0;
}

void store_file_rw(struct export_io *io)
{
	int status;

	*file_io(io) = (struct store_file_io){ .op.done = rw_done };
	io->need_sync = false;
	if (io->op == RNBD_OP_WRITE && inline_write(io, &status)) {
		io->need_sync = true;
		export_io_next_later(io, status);
		return;
	}
	rw_next_piece(io);
}
