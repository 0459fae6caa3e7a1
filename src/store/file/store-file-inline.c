/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffered WRITEs by a plain system call on the reactor's own thread, if this is faster and stops
 * nothing that would not stop anyway (doc/decisions.md D3):
 *   - if all exports of the server lie on one file system (exports.one_medium);
 *   - on file systems that wait only for this machine (STORE_FILE_FS_LOCAL);
 *   - on the threads for IO: the control thread (never_blocks) leaves all writes to workers;
 *   - not for a while after a write that slept: for INLINE_PAUSE_FACTOR times as long workers do
 *     the ring's writes, so such sleeps take a fifth of the thread's time at most.  A write that
 *     only ends late, because another thread had the processor, changes nothing.
 * A file system that takes RWF_NOWAIT never sleeps in the ring's own attempt, and is left to the
 * ring; the first WRITE of an export finds the kind out.
 *
 * Thread of the reactor; any such thread finds the kind of an export, and all find the same. */
#include <config.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "clock.h"
#include "store-file-io.h"
#include "exports.h"

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

bool store_file_inline_takes(const struct export_io *io)
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

bool store_file_inline_write(struct export_io *io, int *status)
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
