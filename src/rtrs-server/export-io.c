/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what export-io has per ring: the tables of fixed files and fixed buffers, descriptors of its
 * own for fdatasync, a mapping of zeroes; and leads each operation through its stages
 * (export-io-priv.h).  Thread of the reactor.  Ends with export_io_detach(), when nothing is in
 * flight.  An operation fails with the first error of its stages; FLUSH and FUA also with the latched
 * one of the export. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "export-io-priv.h"
#include "exports.h"
#include "log.h"

#define MEM_SLOTS 4096u

/* ---- per ring ---- */

/* A second open file description of @ex. */
static int reopen(const struct export *ex)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", ex->fd);
	fd = open(path, O_CLOEXEC | (ex->readonly ? O_RDONLY : O_RDWR));
	return fd < 0 ? -errno : fd;
}

static int attach_export(struct export_ring *ring, struct export *ex, char *err, size_t errlen)
{
	struct reactor *r = ring->reactor;
	int fds[3] = { ex->fd, reopen(ex), ex->tail_fd }, rc;

	if (fds[1] < 0) {
		snprintf(err, errlen, "export '%s': '%s' cannot be opened again through /proc: %s",
			 ex->name, ex->path, strerror(-fds[1]));
		return fds[1];
	}
	export_sync_init(&ring->syncs[ex->index], r, ex, fds[1]);
	rc = io_uring_register_files_update(&r->ring, (unsigned)export_slot(ex), fds, 3);
	if (rc != 3) {
		rc = rc < 0 ? rc : -EIO;
		snprintf(err, errlen, "export '%s': cannot make it a fixed file of the io_uring: %s",
			 ex->name, strerror(-rc));
		return rc;
	}
	return 0;
}

static int make_tables(struct export_ring *ring, char *err, size_t errlen)
{
	struct io_uring *uring = &ring->reactor->ring;
	unsigned nfiles = 3 * ring->nexports;
	int rc = io_uring_register_files_sparse(uring, nfiles);

	if (!rc)
		rc = io_uring_register_buffers_sparse(uring, MEM_SLOTS);
	if (!rc)
		return 0;
	if (rc == -EMFILE)
		snprintf(err, errlen, "%u fixed files are more than RLIMIT_NOFILE allows: raise it "
			 "(ulimit -n, systemd: LimitNOFILE=)", nfiles);
	else if (rc == -EINVAL)
		snprintf(err, errlen, "this kernel's io_uring has no sparse tables: Linux 5.19 or "
			 "later is needed");
	else
		snprintf(err, errlen, "cannot register tables with the io_uring: %s", strerror(-rc));
	return rc;
}

static void run_finished(struct loop_task *task)
{
	struct export_ring *ring = container_of(task, struct export_ring, finish_task);
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &ring->finished);
	while ((l = list_pop(&now))) {
		struct export_io *io = list_entry(l, struct export_io, link);

		export_io_next(io, io->status);
	}
}

static struct export_ring *ring_alloc(struct reactor *r, unsigned nexports)
{
	struct export_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->reactor = r;
	ring->nexports = nexports;
	list_init(&ring->finished);
	loop_task_init(&ring->finish_task, run_finished);
	ring->syncs = calloc(MAX(nexports, 1u), sizeof(*ring->syncs));
	ring->shares = calloc(MAX(nexports, 1u), sizeof(*ring->shares));
	/* Never written to, so all of it is the kernel's one page of zeroes. */
	ring->zeroes = mmap(NULL, EXPORT_ZEROES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!ring->syncs || !ring->shares || ring->zeroes == MAP_FAILED ||
	    bitmap_init(&ring->mems, MEM_SLOTS)) {
		if (ring->zeroes != MAP_FAILED)
			munmap(ring->zeroes, EXPORT_ZEROES);
		free(ring->shares);
		free(ring->syncs);
		free(ring);
		return NULL;
	}
	for (unsigned i = 0; i < nexports; i++) {
		ring->syncs[i].desc.fd = -1;
		export_shares_init(&ring->shares[i]);
	}
	return ring;
}

int export_io_attach(struct reactor *r, const struct exports *exports, bool never_blocks, char *err,
		     size_t errlen)
{
	struct export *ex;
	int rc = reactor_enable(r);

	assert(!r->storage);
	if (rc) {
		snprintf(err, errlen, "cannot use io_uring: %s", strerror(-rc));
		return rc;
	}
	r->storage = ring_alloc(r, exports->n);
	if (!r->storage) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	r->storage->never_blocks = never_blocks;
	rc = make_tables(r->storage, err, errlen);
	list_for_each(ex, &exports->list, link) {
		if (!rc)
			rc = attach_export(r->storage, ex, err, errlen);
	}
	if (rc)
		export_io_detach(r);
	else
		export_share_allow_workers(r, exports->n);
	return rc;
}

void export_io_detach(struct reactor *r)
{
	struct export_ring *ring = r->storage;

	if (!ring)
		return;
	assert(list_empty(&ring->finished));
	/* The ring keeps its references to files and memory until it is closed. */
	for (unsigned i = 0; i < ring->nexports; i++) {
		if (ring->syncs[i].desc.fd >= 0)
			close(ring->syncs[i].desc.fd);
	}
	bitmap_fini(&ring->mems);
	munmap(ring->zeroes, EXPORT_ZEROES);
	free(ring->shares);
	free(ring->syncs);
	free(ring);
	r->storage = NULL;
}

/* ---- fixed buffers ---- */

static void warn_memlock(size_t len)
{
	static _Atomic(bool) warned;
	struct rlimit limit;

	if (atomic_exchange(&warned, true) || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	log_warn(NULL, "%zu bytes cannot be made a fixed buffer: RLIMIT_MEMLOCK is %llu bytes; IO "
		 "goes on without, a little slower (raise it with ulimit -l, systemd: "
		 "LimitMEMLOCK=)", len, (unsigned long long)limit.rlim_cur);
}

int export_io_mem_add(struct reactor *r, void *addr, size_t len)
{
	struct export_ring *ring = r->storage;
	struct iovec iov = { .iov_base = addr, .iov_len = len };
	int slot = bitmap_get(&ring->mems), rc;

	if (slot < 0)
		return -ENOSPC;
	rc = io_uring_register_buffers_update_tag(&r->ring, (unsigned)slot, &iov, NULL, 1);
	if (rc == 1)
		return slot;
	bitmap_put(&ring->mems, (unsigned)slot);
	rc = rc < 0 ? rc : -EIO;
	if (rc == -ENOMEM)
		warn_memlock(len);
	return rc;
}

void export_io_mem_del(struct reactor *r, int handle)
{
	struct iovec none = { 0 };
	int rc;

	rc = io_uring_register_buffers_update_tag(&r->ring, (unsigned)handle, &none, NULL, 1);
	if (rc != 1) {
		/* The slot is not used again; its pages stay locked until the ring is closed. */
		log_warn(reactor_name(r), "cannot give back a fixed buffer: %s", strerror(-rc));
		return;
	}
	bitmap_put(&r->storage->mems, (unsigned)handle);
}

/* ---- one operation ---- */

static void start_work(struct export_io *io)
{
	if (!io->len)
		export_io_next_later(io, 0);
	else if (io->op == RNBD_OP_READ || io->op == RNBD_OP_WRITE)
		export_rw_start(io);
	else
		export_zero_start(io);
}

static void range_msg(struct loop_msg *msg)
{
	start_work(container_of(msg, struct export_io, range_msg));
}

/* Thread of the one that left. */
static void range_granted(struct range *r)
{
	struct export_io *io = container_of(r, struct export_io, range);

	loop_post(reactor_loop(io->reactor), &io->range_msg);
}

/* True if @io may work now; else it is started when the blocks it writes to are free. */
static bool enter_range(struct export_io *io)
{
	uint32_t align = io->ex->dio_align;

	if (!io->ex->direct || align <= RNBD_SECTOR_SIZE || io->op == RNBD_OP_READ || !io->len)
		return true;
	io->range = (struct range){
		.start = align_down(io->offset, align),
		.end = align_up(io->offset + io->len, align),
		.exclusive = (io->offset | io->len) % align,
		.granted = range_granted,
	};
	loop_msg_init(&io->range_msg, range_msg);
	io->in_range = true;
	return range_enter(&io->ex->first->ranges, &io->range);
}

/* It has its share. */
static void enter_work(struct export_io *io)
{
	if (enter_range(io))
		start_work(io);
}

static bool needs_sync(const struct export_io *io)
{
	if (io->op == RNBD_OP_FLUSH)
		return true;
	return (io->flags & RNBD_F_FUA) && io->op != RNBD_OP_READ && io->need_sync;
}

/* Start the stage that @io is in, or a later one if it is not asked for. */
static void start_stage(struct export_io *io)
{
	if (io->stage == EXPORT_PREFLUSH) {
		if ((io->flags & RNBD_F_PREFLUSH) && io->op != RNBD_OP_FLUSH) {
			export_sync_start(io);
			return;
		}
		io->stage++;
	}
	if (io->stage == EXPORT_WORK) {
		if (io->op != RNBD_OP_FLUSH) {
			/* ORDER: who has a range is not one who waits for a share. */
			if (export_share_enter(io))
				enter_work(io);
			return;
		}
		io->stage++;
	}
	if (io->stage == EXPORT_SYNC && needs_sync(io)) {
		export_sync_start(io);
		return;
	}
	io->stage = EXPORT_END;
}

static bool promises_sync(const struct export_io *io)
{
	return io->op == RNBD_OP_FLUSH || (io->flags & RNBD_F_PREFLUSH) ||
	       ((io->flags & RNBD_F_FUA) && io->op != RNBD_OP_READ);
}

void export_io_next(struct export_io *io, int status)
{
	if (io->in_range) {
		io->in_range = false;
		range_leave(&io->ex->first->ranges, &io->range);
	}
	export_share_leave(io, enter_work);
	if (!status) {
		io->stage++;
		start_stage(io);
		if (io->stage != EXPORT_END)
			return;
		if (promises_sync(io))
			status = export_sync_error(io->ex);
	}
	io->done(io, status);
}

void export_io_next_later(struct export_io *io, int status)
{
	struct export_ring *ring = io->reactor->storage;

	io->status = status;
	list_add_tail(&ring->finished, &io->link);
	loop_defer(reactor_loop(io->reactor), &ring->finish_task);
}

void export_io_start(struct reactor *r, struct export_io *io)
{
	int latched = promises_sync(io) ? export_sync_error(io->ex) : 0;

	io->reactor = r;
	io->progress = 0;
	io->bounce = NULL;
	io->need_sync = false;
	io->stage = EXPORT_PREFLUSH;
	list_init(&io->link);
	io->in_share = false;
	io->in_range = false;
	if (latched) {
		io->stage = EXPORT_SYNC;
		export_io_next_later(io, latched);
		return;
	}
	start_stage(io);
}
