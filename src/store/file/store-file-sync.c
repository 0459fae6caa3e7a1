/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns fdatasync of each export on one ring: the requests that wait for the next fdatasync, and
 * the requests that share the running one.
 *
 * The kernel reports a write-back error once per open file description.  No request must succeed
 * because another caller got the error.  So the description is used for nothing else, one
 * fdatasync is in flight at a time, and a failure is latched (export_sync_failed) before the next
 * fdatasync starts.  Waiting together also makes one fdatasync of many FLUSHes.  Cannot fail to
 * start.  From the start until the result is latched the export's state marks the fdatasync
 * (export-state.h), for the next server.
 *
 * A file system in user space may report lost writes, like an error that sshfs learns after it has
 * answered a write, to the description that wrote, once, and to no other one.  So on file systems
 * other than the known ones a sync has more steps: it syncs the descriptions that write, too.  All
 * rings share these.  Another ring's fdatasync may have got the error, and not have latched it yet,
 * when ours succeeds: then ours is repeated until each fdatasync that ran meanwhile has ended.  A
 * turn is a single fdatasync and not all steps of a sync: two rings that wait for each other end.
 *
 * Opening again syncs every description of a file twice.  In the first pass a description may
 * report a known error, or lost data whose writers have gone; a failure in the second pass is a
 * failure for the next user, too.  Behind a failed write-back the page cache has data that the
 * storage lacks, and calls the data clean: the next user would read and flush the data, and lose it
 * later.  So the page cache of the file is dropped before the error is forgotten, and by the server
 * that comes behind a failed sync (doc/decisions.md D13). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exports.h"
#include "log.h"
#include "store-file-io.h"

/* The turns of the ring @i. */
static _Atomic(uint64_t) *sync_turns(const struct store_file_sync *sync, unsigned i)
{
	return &store_file(sync->ex)->sync_descs[i].turns;
}

static void sync_submit(struct store_file_sync *sync)
{
	struct io_uring_sqe *sqe = reactor_ring_sqe(sync->reactor, &sync->op);
	int file = store_file_fixed_sync(sync->ex);

	if (sync->step == SYNC_TAIL)
		file = store_file_fixed_tail(sync->ex);
	else if (sync->step != SYNC_OWN)
		file = store_file_fixed(sync->ex);
	io_uring_prep_fsync(sqe, file, IORING_FSYNC_DATASYNC);
	sqe->flags |= IOSQE_FIXED_FILE;
}

static void sync_start_step(struct store_file_sync *sync)
{
	atomic_fetch_add(sync_turns(sync, sync->ring), 1);
	sync_submit(sync);
}

static void sync_go(struct store_file_sync *sync)
{
	list_splice_tail(&sync->running, &sync->waiting);
	sync->step = SYNC_OWN;
	sync->other = 0;
	sync->turn = 0;
	sync->state = export_sync_begun(sync->ex);
	sync_start_step(sync);
}

/* True while another ring runs an fdatasync that ran when ours succeeded. */
static bool sync_others_run(struct store_file_sync *sync)
{
	for (; sync->other < sync->ex->all->nrings; sync->other++, sync->turn = 0) {
		uint64_t turn = atomic_load(sync_turns(sync, sync->other));

		if (sync->other == sync->ring || !(turn % 2) || (sync->turn && sync->turn != turn))
			continue;
		sync->turn = turn;
		return true;
	}
	return false;
}

/* The step after one that has succeeded. */
static enum store_file_sync_step sync_next_step(struct store_file_sync *sync)
{
	if (store_file(sync->ex)->fs & STORE_FILE_FS_ERRORS)
		return SYNC_DONE;
	if (sync->step == SYNC_OWN)
		return SYNC_WRITER;
	if (sync->step == SYNC_WRITER && store_file(sync->ex)->tail_fd >= 0)
		return SYNC_TAIL;
	return sync_others_run(sync) ? SYNC_OTHERS : SYNC_DONE;
}

static void sync_done(struct reactor_op *op, int res, unsigned flags)
{
	struct store_file_sync *sync = container_of(op, struct store_file_sync, op);
	struct export_io *io;
	struct list finished;
	int status;

	if (store_file_later(sync->ex, sync->reactor, op, &res))
		return;
	if (res == -EINTR || res == -EAGAIN) {
		sync_submit(sync);
		return;
	}
	if (res < 0) {
		if (!export_sync_error(sync->ex))
			log_event(LOG_LEVEL_ERROR,
				  LOG_FIELDS(SYNC_FAILED, .export = sync->ex->name), sync->ex->name,
				  "fdatasync: %s; FLUSH and FUA fail until all clients "
				  "that write have closed the export",
				  strerror(-res));
		export_sync_failed(sync->ex, res);
	}
	/* ORDER: after the error is latched, before it is looked for. */
	atomic_fetch_add(sync_turns(sync, sync->ring), 1);
	sync->step = res < 0 ? SYNC_DONE : sync_next_step(sync);
	if (sync->step != SYNC_DONE) {
		sync_start_step(sync);
		return;
	}
	export_sync_ended(sync->state);
	status = export_sync_error(sync->ex);
	list_take(&finished, &sync->running);
	/* ORDER: the next fdatasync starts before the answers to this one. */
	if (!list_empty(&sync->waiting))
		sync_go(sync);
	while ((io = list_pop_entry(&finished, struct export_io, link)))
		export_io_next(io, status);
}

/* Queue @io for the next fdatasync. */
static void store_file_sync(struct export_io *io)
{
	struct store_file_sync *sync = io->slot->own;

	list_add_tail(&sync->waiting, &io->link);
	if (list_empty(&sync->running))
		sync_go(sync);
}

/* ---- opening again ---- */

#define REOPEN_PASSES 2

static void reopen_go(struct export_reopen_io *io)
{
	struct io_uring_sqe *sqe = reactor_ring_sqe(io->reactor, &io->op);

	io_uring_prep_fsync(sqe, list_entry(io->desc, struct export_desc, link)->fd,
			    IORING_FSYNC_DATASYNC);
}

static void reopen_end(struct export_reopen_io *io)
{
	struct export *ex = io->ex;
	int status = io->status;

	if (status)
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(SYNC_FAILED, .export = ex->name), ex->name,
			  "reopened, and fdatasync still fails: %s; FLUSH and FUA keep failing",
			  strerror(-status));
	else
		atomic_store(&ex->store->sync_error, 0);
	ex->store->reopen = EXPORT_REOPEN_DONE;
	io->done(io->arg);
}

static void reopen_dropped(struct reactor_op *op, int res, unsigned flags);

/* All descriptions are of one file, or device, which has one page cache. */
static void reopen_drop(struct export_reopen_io *io)
{
	struct list *descs = &store_file_all(io->ex->store)->descs;

	io->op.done = reopen_dropped;
	io_uring_prep_fadvise(reactor_ring_sqe(io->reactor, &io->op),
			      list_entry(descs->next, struct export_desc, link)->fd, 0, 0,
			      POSIX_FADV_DONTNEED);
}

static void reopen_dropped(struct reactor_op *op, int res, unsigned flags)
{
	struct export_reopen_io *io = container_of(op, struct export_reopen_io, op);

	if (store_file_later(io->ex, io->reactor, op, &res))
		return;
	if (res == -EAGAIN)
		reopen_drop(io);
	else			/* memory that cannot be dropped stays */
		reopen_end(io);
}

static void sync_reopen_done(struct reactor_op *op, int res, unsigned flags)
{
	struct export_reopen_io *io = container_of(op, struct export_reopen_io, op);
	struct list *descs = &store_file_all(io->ex->store)->descs;

	if (store_file_later(io->ex, io->reactor, op, &res))
		return;
	if (res == -EINTR || res == -EAGAIN) {
		reopen_go(io);
		return;
	}
	if (res < 0 && io->pass == REOPEN_PASSES)
		io->status = res;
	io->desc = io->desc->next;
	if (io->desc == descs && io->pass < REOPEN_PASSES) {
		io->pass++;
		io->desc = descs->next;
	}
	if (io->desc != descs)
		reopen_go(io);
	else if (io->status)
		reopen_end(io);
	else
		reopen_drop(io);
}

void store_file_sync_drop(struct export *ex)
{
	/* An error of this sync is reported to the other descriptions, too. */
	fdatasync(store_file(ex)->fd);
	posix_fadvise(store_file(ex)->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void store_file_sync_reopen(struct reactor *r, struct export *ex, void (*done)(void *arg),
				   void *arg)
{
	struct store_file_all *all = store_file_all(ex->store);

	all->reopen_io = (struct export_reopen_io){
		.op.done = sync_reopen_done,
		.reactor = r,
		.ex = ex,
		.desc = all->descs.next,
		.pass = 1,
		.done = done,
		.arg = arg,
	};
	reopen_go(&all->reopen_io);	/* the list has the descriptor of open() at least */
}

/* ---- a file on a ring ---- */

/* Make the @n descriptors @fds the fixed files of @ring from @first on; -1: no file there.  0 or
 * -errno. */
static int make_fixed(struct export_ring *ring, int first, const int *fds, unsigned n)
{
	int rc = io_uring_register_files_update(&ring->reactor->ring, (unsigned)first, fds, n);

	return rc == (int)n ? 0 : rc < 0 ? rc : -EIO;
}

static int fixed_result(const struct export *ex, int rc, char *err, size_t errlen)
{
	if (rc)
		snprintf(err, errlen,
			 "export '%s': cannot make it a fixed file of the io_uring: %s", ex->name,
			 strerror(-rc));
	return rc;
}

static int file_attach(struct export_slot *slot, char *err, size_t errlen)
{
	const struct store_file *f = store_file(slot->ex);
	int fds[STORE_FILE_NFIXED] = { f->fd, f->sync_descs[slot->ring->index].fd, f->tail_fd };
	struct store_file_sync *sync = calloc(1, sizeof(*sync));
	int rc = -ENOMEM;

	if (sync)
		rc = make_fixed(slot->ring, store_file_fixed(slot->ex), fds, STORE_FILE_NFIXED);
	if (rc) {
		free(sync);
		return fixed_result(slot->ex, rc, err, errlen);
	}
	sync->op.done = sync_done;
	sync->reactor = slot->ring->reactor;
	sync->ring = slot->ring->index;
	sync->ex = slot->ex;
	list_init(&sync->waiting);
	list_init(&sync->running);
	slot->own = sync;
	return 0;
}

static void file_detach(struct export_slot *slot)
{
	static const int none[STORE_FILE_NFIXED] = { -1, -1, -1 };

	store_file_extents_detach(slot);
	make_fixed(slot->ring, store_file_fixed(slot->ex), none, STORE_FILE_NFIXED);
	free(slot->own);
}

static int file_attach_store(struct export_ring *ring, struct store *store, char *err,
			     size_t errlen)
{
	const struct store_file_keep *keep = &store_file_all(store)->keep;
	int fds[STORE_FILE_NKEPT] = { keep->claim_fd, keep->lock_fd, keep->own_fd };
	int rc = make_fixed(ring, store_file_fixed_kept(store), fds, STORE_FILE_NKEPT);

	return fixed_result(store_oldest_name(store), rc, err, errlen);
}

static void file_detach_store(struct export_ring *ring, struct store *store)
{
	static const int none[STORE_FILE_NKEPT] = { -1, -1, -1 };

	make_fixed(ring, store_file_fixed_kept(store), none, STORE_FILE_NKEPT);
}

const struct store_io_ops store_file_io_ops = {
	.attach = file_attach,
	.detach = file_detach,
	.attach_store = file_attach_store,
	.detach_store = file_detach_store,
	.rw = store_file_rw,
	.zero = store_file_zero,
	.extents = store_file_extents,
	.sync = store_file_sync,
	.takes_at_once = store_file_rw_takes,
	.reopen = store_file_sync_reopen,
	.size = store_file_size,
	.named = store_file_size_named,
};
