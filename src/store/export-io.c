/* SPDX-License-Identifier: BSD-3-Clause */
/* Leads each operation through its stages; thread of the reactor.
 *
 * The happy path: export_io_start(); a PREFLUSH, if asked for; WORK, which waits for the range of a
 * direct export, and for a share of the ring; SYNC for FLUSH and FUA (store-driver.h); the end is
 * told in the next pass.
 *
 * Possible failures: an operation fails with the first error of its stages; FLUSH and FUA also with
 * the latched error of the export. */
#include <config.h>

#include "clock.h"
#include "rnbd-ext.h"
#include "store-driver.h"
#include "store-lead.h"

static bool io_only_reads(const struct export_io *io)
{
	return io->op == RNBD_OP_READ || io->op == RNBD_OP_EXTENTS;
}

static void start_work(struct export_io *io)
{
	if (!io->len)
		export_io_next_later(io, 0);
	else if (io->op == RNBD_OP_READ || io->op == RNBD_OP_WRITE)
		io->slot->ops->rw(io);
	else if (io->op == RNBD_OP_EXTENTS)
		io->slot->ops->extents(io);
	else
		io->slot->ops->zero(io);
}

static void range_msg(struct loop_msg *msg)
{
	start_work(container_of(msg, struct export_io, msg));
}

/* Thread of the operation that left the range. */
static void range_granted(struct range *r)
{
	struct export_io *io = container_of(r, struct export_io, range);

	loop_post(reactor_loop(io->reactor), &io->msg);
}

/* True if @io may work now.  False: @io is started when its blocks are free. */
static bool enter_range(struct export_io *io)
{
	uint32_t align = io->ex->block_align;

	if (align <= RNBD_SECTOR_SIZE || io_only_reads(io) || !io->len)
		return true;
	io->range = (struct range){
		.start = align_down(io->offset, align),
		.end = align_up(io->offset + io->len, align),
		.exclusive = (io->offset | io->len) % align,
		.granted = range_granted,
	};
	loop_msg_init(&io->msg, range_msg);
	io->ranges = &io->ex->store->ranges;
	return range_enter(io->ranges, &io->range);
}

/* Start the work of @io, which has its share, or wait for its range. */
static void enter_work(struct export_io *io)
{
	if (enter_range(io))
		start_work(io);
}

/* ---- shares ---- */

/* How much of a ring one export may hold, so that a file system that stops does not hold all
 * workers of io_uring (doc/decisions.md D3).  The work of an export on a ring is limited, and the
 * rest waits in order of arrival.  A ring may have workers for the limits of all its exports; the
 * kernel makes workers for work that waits.
 *
 * No share has:
 *   - a READ, which waits for a disk without a worker, except for reads of a file system's own data
 *     (WORKERS_SPARE);
 *   - fdatasync, of which one runs at a time (store-file-sync.c);
 *   - a WRITE that is taken at once (store-file-rw.c).
 *
 * Cannot fail: with fewer workers, which is logged, requests wait. */

#define SHARE_WRITES 64u
/* DISCARD and WRITE_ZEROES have a share of their own, because both may take much longer than a
 * write.  In the kernel such operations on one file wait for each other, so few at a time are as
 * quick as many. */
#define SHARE_ZEROES 8u
#define SHARE_SYNCS 1u
#define WORKERS_SPARE 64u
#define WORKERS_MAX 1024u

static struct export_share *share_of(const struct export_io *io)
{
	return io->op == RNBD_OP_WRITE ? &io->slot->writes : &io->slot->zeroes;
}

static bool share_take(struct export_share *share, struct export_io *io)
{
	if (share->used == (io->op == RNBD_OP_WRITE ? SHARE_WRITES : SHARE_ZEROES))
		return false;
	share->used++;
	io->share = share;
	return true;
}

/* True if @io, which is no READ, may go to work now.  False: share_leave() starts @io when it is
 * its turn. */
static bool share_enter(struct export_io *io)
{
	struct export_share *share = share_of(io);

	if (io->op == RNBD_OP_WRITE && io->slot->ops->takes_at_once(io))
		return true;
	if (list_empty(&share->waiting) && share_take(share, io))
		return true;
	list_add_tail(&share->waiting, &io->link);
	return false;
}

/* @io has left the WORK stage with io->share: start the operations whose turn it is. */
static void share_leave(struct export_io *io)
{
	struct export_share *share = io->share;

	io->share = NULL;
	share->used--;
	while (!list_empty(&share->waiting)) {
		struct export_io *next = list_entry(share->waiting.next, struct export_io, link);

		if (!share_take(share, next))
			return;
		list_del(&next->link);
		enter_work(next);
	}
}

/* ---- stages ---- */

static bool needs_sync(const struct export_io *io)
{
	if (io->op == RNBD_OP_FLUSH)
		return true;
	return (io->flags & RNBD_F_FUA) && !io_only_reads(io) && io->need_sync;
}

/* Start the current stage of @io, or the next stage that @io needs. */
static void start_stage(struct export_io *io)
{
	if (io->stage == EXPORT_PREFLUSH) {
		if ((io->flags & RNBD_F_PREFLUSH) && io->op != RNBD_OP_FLUSH) {
			io->slot->ops->sync(io);
			return;
		}
		io->stage++;
	}
	if (io->stage == EXPORT_WORK) {
		if (io->op != RNBD_OP_FLUSH) {
			/* ORDER: the share first.  An operation that waits for a share has no
			 * range. */
			if (io_only_reads(io) || share_enter(io))
				enter_work(io);
			return;
		}
		io->stage++;
	}
	if (io->stage == EXPORT_SYNC && needs_sync(io)) {
		io->slot->ops->sync(io);
		return;
	}
	io->stage = EXPORT_END;
}

static bool promises_sync(const struct export_io *io)
{
	return io->op == RNBD_OP_FLUSH || (io->flags & RNBD_F_PREFLUSH) ||
	       ((io->flags & RNBD_F_FUA) && !io_only_reads(io));
}

/* ---- the pulse: only this thread writes it ---- */

static struct export_pulse *pulse_of(const struct export_io *io)
{
	return &io->ex->pulse[io->slot->ring->index];
}

static void pulse_count(const struct export_io *io, int more)
{
	struct export_pulse *p = pulse_of(io);
	unsigned flying = atomic_load_explicit(&p->flying, memory_order_relaxed);

	/* A request that joins others does not make the storage look alive. */
	if (more < 0 || !flying)
		atomic_store_explicit(&p->since_ms, clock_now_ms(), memory_order_relaxed);
	atomic_store_explicit(&p->flying, flying + (unsigned)more, memory_order_release);
}

void export_io_next(struct export_io *io, int status)
{
	if (io->ranges) {
		range_leave(io->ranges, &io->range);
		io->ranges = NULL;
	}
	if (io->share)
		share_leave(io);
	if (!status) {
		io->stage++;
		start_stage(io);
		if (io->stage != EXPORT_END)
			return;
		if (promises_sync(io))
			status = export_sync_error(io->ex);
	} else if (io->stage == EXPORT_WORK && !export_io_is_fenced(io, status)) {
		export_io_failed(io, status);
	}
	if (!status && (io->op == RNBD_OP_WRITE || io->op == RNBD_OP_WRITE_ZEROES))
		counter_add(&pulse_of(io)->wrote, 1);
	pulse_count(io, -1);
	io->done(io, status);
}

void export_io_next_later(struct export_io *io, int status)
{
	struct export_ring *ring = io->slot->ring;

	io->status = status;
	list_add_tail(&ring->finished, &io->link);
	loop_defer(reactor_loop(io->reactor), &ring->finish_task);
}

void export_io_all_data(struct export_io *io)
{
	struct rnbd_extents_writer w;

	rnbd_extents_begin(&w, io->buf, io->room);
	rnbd_extents_add(&w, io->len, 0);
	rnbd_extents_end(&w);
}

void export_io_start(struct reactor *r, struct export_io *io)
{
	int latched;

	if (io->ex->durable && (io->op == RNBD_OP_WRITE || io->op == RNBD_OP_WRITE_ZEROES))
		io->flags |= RNBD_F_FUA;
	io->reactor = r;
	io->slot = reactor_storage(r)->slots[io->ex->index];
	latched = promises_sync(io) ? export_sync_error(io->ex) : 0;
	pulse_count(io, 1);
	io->need_sync = false;
	io->stage = EXPORT_PREFLUSH;
	list_init(&io->link);
	io->share = NULL;
	io->ranges = NULL;
	if (latched) {
		io->stage = EXPORT_SYNC;
		export_io_next_later(io, latched);
		return;
	}
	start_stage(io);
}

void export_io_finish_task(struct loop_task *task)
{
	struct export_ring *ring = container_of(task, struct export_ring, finish_task);
	struct export_io *io;
	struct list now;

	list_take(&now, &ring->finished);
	while ((io = list_pop_entry(&now, struct export_io, link)))
		export_io_next(io, io->status);
}

static void io_reopen_done(void *arg)
{
	struct store *store = arg;
	void (*done)(void *arg) = store->reopen_done;
	void *done_arg = store->reopen_arg;

	store_put(store);
	done(done_arg);
}

void export_io_reopen(struct reactor *r, struct export *ex, void (*done)(void *arg), void *arg)
{
	struct store *store = ex->store;

	store->reopen = EXPORT_REOPEN_RUNS;
	store->reopen_done = done;
	store->reopen_arg = arg;
	store_hold(store);
	reactor_storage(r)->slots[ex->index]->ops->reopen(r, ex, io_reopen_done, store);
}

bool export_io_size(struct reactor *r, struct export *ex, int64_t *size,
		    void (*done)(struct export *ex, int64_t size, void *arg), void *arg)
{
	return reactor_storage(r)->slots[ex->index]->ops->size(r, ex, size, done, arg);
}

bool export_io_named(struct reactor *r, struct export *ex, int64_t *named,
		     void (*done)(struct export *ex, int64_t named, void *arg), void *arg)
{
	const struct store_io_ops *ops = reactor_storage(r)->slots[ex->index]->ops;

	*named = EXPORT_NAMED_OPEN;
	return !ops->named || ops->named(r, ex, named, done, arg);
}

/* ---- an export on a ring ---- */

void export_io_share_init(struct export_slot *slot)
{
	list_init(&slot->writes.waiting);
	list_init(&slot->zeroes.waiting);
}

void export_io_share_allow_workers(struct reactor *r, unsigned nexports)
{
	const unsigned each = SHARE_WRITES + SHARE_ZEROES + SHARE_SYNCS;
	unsigned want = MIN(nexports * each + WORKERS_SPARE, WORKERS_MAX);

	store_uring_allow_workers(r, want);
}
