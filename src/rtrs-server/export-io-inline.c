/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffered WRITEs by a plain system call on the reactor's own thread, where that is the faster way.
 *
 * A file system that cannot tell in advance whether a buffered write would block (ext4, and all that
 * refuse RWF_NOWAIT there) makes io_uring hand each such write to a worker thread: two wake-ups for
 * a copy into the page cache.  Measured with fio on ext4, 4k, depth 1: 12 k writes a second through the
 * ring, 390 k by system call.  What a worker would protect from is a write that sleeps, because the
 * kernel throttles a writer of dirty pages or waits for its journal.  So writes are done here as long
 * as they do not sleep; one that does for long sends this ring's writes of INLINE_PAUSE_FACTOR times
 * as long to workers, so that such sleeps take a fifth of the thread's time at most and its other
 * connections go on.  A write that only ends late, because the host is busy and another thread had
 * the processor, changes nothing.
 *
 * A file system that takes RWF_NOWAIT never sleeps in the ring's own attempt and is left to it; the
 * first WRITE of an export finds out which kind it is.
 *
 * Thread of the reactor; the kind of an export is found by any of them, all come to the same. */
#include <config.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "clock.h"
#include "export-io-priv.h"

#define INLINE_SLOW_MS 5u
#define INLINE_PAUSE_FACTOR 4u

enum inline_kind {
	INLINE_UNKNOWN,
	INLINE_RING,			/* the ring does not need a worker */
	INLINE_CALL,
};

static ssize_t write_piece(struct export_io *io, int flags)
{
	struct iovec iov = {
		.iov_base = (char *)io->buf + io->progress,
		.iov_len = io->len - io->progress,
	};
	ssize_t n;

	do {
		n = pwritev2(io->ex->fd, &iov, 1, (off_t)(io->offset + io->progress), flags);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* How often this thread has slept. */
static long sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_nvcsw;
}

/* The first WRITE of an export, attempted as the ring would. */
static void find_kind(struct export_io *io)
{
	ssize_t n = write_piece(io, RWF_NOWAIT);

	if (n > 0)
		io->progress += (uint32_t)n;
	if (n > 0 || n == -EAGAIN || n == -EOPNOTSUPP)
		atomic_store_explicit(&io->ex->inline_kind,
				      n == -EOPNOTSUPP ? INLINE_CALL : INLINE_RING,
				      memory_order_relaxed);
}

bool export_io_takes_at_once(struct reactor *r, const struct export *ex, uint32_t flags)
{
	return !ex->direct && !(flags & RNBD_F_PREFLUSH) &&
	       atomic_load_explicit(&ex->inline_kind, memory_order_relaxed) == INLINE_CALL &&
	       clock_now_ms() >= r->storage->inline_pause_until_ms;
}

bool export_inline_write(struct export_io *io, int *status)
{
	struct export_ring *ring = io->reactor->storage;
	uint64_t begin, end;
	ssize_t n = 1;
	long slept;

	if (io->op != RNBD_OP_WRITE || io->ex->direct)
		return false;
	if (atomic_load_explicit(&io->ex->inline_kind, memory_order_relaxed) == INLINE_UNKNOWN)
		find_kind(io);
	begin = clock_now_ms();
	if (io->progress < io->len &&
	    (atomic_load_explicit(&io->ex->inline_kind, memory_order_relaxed) != INLINE_CALL ||
	     begin < ring->inline_pause_until_ms))
		return false;
	slept = sleeps();
	while (io->progress < io->len && (n = write_piece(io, 0)) > 0)
		io->progress += (uint32_t)n;
	end = clock_now_ms();
	if (end - begin >= INLINE_SLOW_MS && sleeps() != slept)
		ring->inline_pause_until_ms = end + (end - begin) * INLINE_PAUSE_FACTOR;
	*status = n > 0 ? 0 : n < 0 ? (int)n : -EIO;
	return true;
}
